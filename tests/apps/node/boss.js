// pg-boss: its schema (functions in PL/pgSQL, partitions), queues with policies, retries, dead letters, schedules.
const PgBoss = require("pg-boss");

(async () => {
  const boss = new PgBoss({ connectionString: process.argv[2], schedule: true, supervise: false });
  boss.on("error", (e) => console.log("error", e.message));
  await boss.start();
  await boss.createQueue("dead");
  await boss.createQueue("mail", { retryLimit: 1, retryDelay: 0, deadLetter: "dead" });
  await boss.createQueue("single", { policy: "singleton" });
  const ids = [];
  for (let n = 0; n < 5; n++) ids.push(await boss.send("mail", { n }, { priority: n }));
  console.log("sent", ids.every((id) => typeof id === "string"), await boss.getQueueSize("mail"));
  await boss.insert([{ name: "mail", data: { n: 50 } }, { name: "mail", data: { n: 51 }, startAfter: 3600 }]);
  const first = await boss.fetch("mail", { batchSize: 3 });
  console.log("fetched", first.map((j) => j.data.n).sort());
  await boss.complete("mail", first.map((j) => j.id), { ok: true });
  console.log("completed", (await boss.getJobById("mail", first[0].id)).state);
  for (let round = 0; round < 2; round++) {
    const [job] = await boss.fetch("mail");
    await boss.fail("mail", job.id, { why: "no" });
    console.log("failed", job.data.n, (await boss.getJobById("mail", job.id)).state);
  }
  console.log("dead", (await boss.fetch("dead")).map((j) => j.data.n));
  await boss.cancel("mail", ids[0]);
  await boss.resume("mail", ids[0]);
  console.log("resumed", (await boss.getJobById("mail", ids[0])).state);
  await boss.send("single", { a: 1 });
  await boss.send("single", { a: 2 });
  console.log("single", (await boss.fetch("single")).length, (await boss.fetch("single")).length);
  console.log("unique", [await boss.send("mail", {}, { singletonKey: "k", singletonSeconds: 60 }) !== null,
    await boss.send("mail", {}, { singletonKey: "k", singletonSeconds: 60 })]);
  await boss.schedule("mail", "*/5 * * * *", { cron: true });
  console.log("schedules", (await boss.getSchedules()).map((s) => [s.name, s.cron]));
  await new Promise((resolve) => {
    boss.work("mail", { pollingIntervalSeconds: 0.5 }, async ([job]) => {
      if (job.data.n === ids.length - 5) resolve();
    });
  });
  await boss.maintain();
  await boss.purgeQueue("mail");
  console.log("queues", (await boss.getQueues()).map((q) => [q.name, q.policy]).sort());
  await boss.deleteQueue("__pgboss__send-it");
  console.log("left", (await boss.getQueues()).length);
  await boss.stop({ graceful: false, wait: true });
  process.exit(0);
})().catch((e) => { console.log("FAILED", e.message); process.exit(1); });
