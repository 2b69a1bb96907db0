"""Procrastinate: its schema (functions and triggers in PL/pgSQL), jobs with locks, queueing locks and priorities,
retries, schedules, cancellation, and a worker that takes them."""
import asyncio
import sys

import procrastinate
from procrastinate import jobs

app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=sys.argv[1]))
done = []


@app.task(queue="sums")
def add(a, b):
    done.append(a + b)
    return a + b


@app.task(queue="sums", retry=2)
def fails(name):
    done.append(f"tried {name}")
    raise ValueError(name)


@app.task(queue="ordered", lock="one at a time")
async def ordered(n):
    done.append(n)


@app.periodic(cron="0 * * * *")
@app.task(queueing_lock="tidy", queue="sums")
async def tidy(timestamp):
    done.append("tidied")


async def main():
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        for n in range(3):
            await ordered.defer_async(n=n)
        low = await add.configure(priority=-1).defer_async(a=1, b=2)
        await add.configure(priority=5).defer_async(a=10, b=20)
        await fails.defer_async(name="x")
        await add.configure(schedule_in={"days": 1}).defer_async(a=0, b=0)
        await app.configure_task("unknown", queueing_lock="once").defer_async()
        try:
            await app.configure_task("unknown", queueing_lock="once").defer_async()
        except procrastinate.exceptions.AlreadyEnqueued:
            print("already enqueued")
        cancelled = await add.defer_async(a=7, b=7)
        print("cancelled", await app.job_manager.cancel_job_by_id_async(cancelled))
        print("status", await app.job_manager.get_job_status_async(cancelled))
        await app.run_worker_async(wait=False, install_signal_handlers=False, concurrency=1, listen_notify=False)
        print("done", done)
        for status in jobs.Status:
            found = await app.job_manager.list_jobs_async(status=status.value)
            print(status.value, sorted((j.task_name.rsplit(".")[-1], j.attempts) for j in found))
        print("queues", sorted((q["name"], q["jobs_count"]) for q in await app.job_manager.list_queues_async()))
        rows = await app.connector.execute_query_all_async(
            "SELECT type::text AS type, count(*) AS n FROM procrastinate_events GROUP BY 1 ORDER BY 1")
        print("events", [(r["type"], r["n"]) for r in rows])
        print("low", await app.job_manager.get_job_status_async(low))


asyncio.run(main())
