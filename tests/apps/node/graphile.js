// graphile-worker: its migrations (functions and triggers), add_job in SQL, job keys, retries, queues, batches.
const { makeWorkerUtils, runOnce } = require("graphile-worker");
const { Pool } = require("pg");

(async () => {
  const connectionString = process.argv[2];
  const logger = new (require("graphile-worker").Logger)(() => () => {});
  const utils = await makeWorkerUtils({ connectionString, logger });
  await utils.migrate();
  const pool = new Pool({ connectionString });
  const seen = [];
  const taskList = {
    hello: async (payload) => { seen.push(`hello ${payload.name}`); },
    fails: async () => { seen.push("failing"); throw new Error("no"); },
    batch: async (payload) => { seen.push(`batch ${payload.length}`); },
  };
  await utils.addJob("hello", { name: "a" });
  await utils.addJob("hello", { name: "b" }, { priority: -10 });
  await utils.addJob("hello", { name: "old" }, { jobKey: "k" });
  await utils.addJob("hello", { name: "new" }, { jobKey: "k" });
  await utils.addJob("hello", { name: "kept" }, { jobKey: "p", runAt: new Date(0) });
  await utils.addJob("hello", { name: "date moves" }, { jobKey: "p", jobKeyMode: "preserve_run_at" });
  await utils.addJob("batch", [1], { jobKey: "all", jobKeyMode: "unsafe_dedupe" });
  await pool.query("SELECT graphile_worker.add_job('hello', json_build_object('name', 'sql'), queue_name := 'q', max_attempts := 3)");
  await pool.query(`SELECT graphile_worker.add_jobs(ARRAY[('hello', '{"name":"many"}'::json, NULL, NULL, NULL, NULL, NULL, NULL)]::graphile_worker.job_spec[])`);
  await utils.addJob("fails", {}, { maxAttempts: 1 });
  await utils.addJob("fails", {}, { runAt: new Date(Date.now() + 1e8) });
  const later = await utils.addJob("hello", { name: "never" }, { runAt: new Date(Date.now() + 1e9) });
  console.log("completed", (await utils.completeJobs([later.id])).length);
  await pool.query(`CREATE TABLE people (id int PRIMARY KEY, name text);
    CREATE FUNCTION welcome() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      PERFORM graphile_worker.add_job('hello', json_build_object('name', NEW.name)); RETURN NEW; END $$;
    CREATE TRIGGER welcome AFTER INSERT ON people FOR EACH ROW EXECUTE FUNCTION welcome();
    INSERT INTO people VALUES (1, 'from a trigger')`);
  await runOnce({ pgPool: pool, taskList, logger, concurrency: 1 });
  console.log(seen.sort().join("\n"));
  const left = await pool.query("SELECT task_identifier, attempts, max_attempts, last_error IS NOT NULL AS failed FROM graphile_worker.jobs ORDER BY 1, 2");
  console.log(JSON.stringify(left.rows));
  const moved = await utils.rescheduleJobs([left.rows.length ? (await pool.query("SELECT min(id) AS id FROM graphile_worker.jobs")).rows[0].id : 0], { priority: 7 });
  console.log("moved", moved.map((j) => j.priority));
  const queues = await pool.query("SELECT count(*)::int AS n FROM graphile_worker._private_job_queues");
  console.log("queues", queues.rows[0].n);
  await utils.withPgClient((c) => c.query("SELECT graphile_worker.remove_job('k')"));
  await utils.release();
  await pool.end();
})().catch((e) => { console.log("FAILED", e.message); process.exit(1); });
