"""Spark over JDBC: a table written by several tasks, read in partitions, with conditions and aggregates done by the server,
appended to and written anew without losing its definition."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

url, jar = sys.argv[1], sys.argv[2]
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.driver.extraClassPath", jar)
    .config("spark.ui.enabled", "false")
    .config("spark.sql.session.timeZone", "UTC")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.sql.shuffle.partitions", "4")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")
given = {"user": "postgres", "driver": "org.postgresql.Driver"}


def read(**more):
    return spark.read.format("jdbc").options(url=url, **given, **more).load()


rows = spark.range(0, 50000).select(
    "id",
    (f.col("id") % 7).cast("int").alias("kind"),
    (f.col("id") * 1.25).cast("decimal(12,2)").alias("amount"),
    f.concat(f.lit("row "), f.col("id")).alias("note"),
    f.expr("timestamp_seconds(id * 60)").alias("at"),
    f.expr("id % 3 = 0").alias("odd"),
    f.expr("date_add(date'2024-01-01', cast(id % 366 as int))").alias("day"),
)
rows.repartition(4).write.jdbc(url, "facts", mode="overwrite", properties={**given, "batchsize": "1000"})
back = spark.read.jdbc(
    url, "facts", column="id", lowerBound=0, upperBound=50000, numPartitions=8, properties=given
)
print("partitions:", back.rdd.getNumPartitions())
print("schema:", back.schema.simpleString())
print("the same:", back.exceptAll(rows).count() + rows.exceptAll(back).count() == 0)
for row in back.groupBy("kind").agg(f.count("*").alias("n"), f.sum("amount").alias("s")).orderBy("kind").collect():
    print(" ", row.kind, row.n, row.s)

few = read(dbtable="facts", pushDownAggregate="true", pushDownLimit="true").where("kind = 3 AND note LIKE 'row 1%'")
print("with conditions:", few.count(), few.agg(f.max("amount")).collect()[0][0])
asked = read(query="SELECT day, count(*) AS n FROM facts GROUP BY day ORDER BY day LIMIT 3")
print("of a query:", [(str(r.day), r.n) for r in asked.orderBy("day").collect()])
days = spark.read.jdbc(
    url, "facts", predicates=["day < '2024-03-01'", "day >= '2024-03-01' AND day < '2024-09-01'", "day >= '2024-09-01'"],
    properties=given,
)
print("by predicates:", days.rdd.getNumPartitions(), days.count())

rows.limit(10).write.jdbc(url, "facts", mode="append", properties=given)
print("appended:", read(dbtable="facts").count())
rows.where("id < 100").write.jdbc(url, "facts", mode="overwrite", properties={**given, "truncate": "true"})
print("truncated:", read(dbtable="facts").count())
spark.stop()
