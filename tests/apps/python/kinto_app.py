"""Kinto with its storage, permissions and cache in the database: migrations with triggers that stamp records, and the
API over WSGI."""
import sys

import webtest
from kinto import main
from kinto.core.initialization import setup_storage  # noqa: F401
from pyramid.config import Configurator  # noqa: F401

url = sys.argv[1]
settings = {
    "kinto.storage_backend": "kinto.core.storage.postgresql",
    "kinto.storage_url": url,
    "kinto.permission_backend": "kinto.core.permission.postgresql",
    "kinto.permission_url": url,
    "kinto.cache_backend": "kinto.core.cache.postgresql",
    "kinto.cache_url": url,
    "kinto.userid_hmac_secret": "secret",
    "multiauth.policies": "basicauth",
    "kinto.bucket_create_principals": "system.Authenticated",
}
app = main({}, None, **settings)
registry = app.registry
for backend in (registry.storage, registry.permission, registry.cache):
    backend.initialize_schema()
web = webtest.TestApp(app)
web.authorization = ("Basic", ("alice", "pw"))
headers = {"Content-Type": "application/json"}
web.put_json("/v1/buckets/b", {}, status=201)
web.put_json("/v1/buckets/b/collections/c", {}, status=201)
for n in range(7):
    web.put_json(f"/v1/buckets/b/collections/c/records/r{n}", {"data": {"n": n, "tags": ["a"] * n, "t": f"x{n}"}})
listed = web.get("/v1/buckets/b/collections/c/records?_sort=-n&_limit=3").json["data"]
print("sorted", [r["id"] for r in listed])
print("filtered", [r["id"] for r in web.get("/v1/buckets/b/collections/c/records?min_n=2&lt_n=5&_sort=n").json["data"]])
print("like", [r["id"] for r in web.get("/v1/buckets/b/collections/c/records?like_t=x*&_sort=n&_limit=2").json["data"]])
print("contains", [r["id"] for r in web.get("/v1/buckets/b/collections/c/records?contains_tags=a&_sort=n").json["data"]])
before = web.get("/v1/buckets/b/collections/c/records").headers["ETag"]
web.patch_json("/v1/buckets/b/collections/c/records/r1", {"data": {"n": 100}})
after = web.get("/v1/buckets/b/collections/c/records").headers["ETag"]
print("stamped", after.strip('"') > before.strip('"'))
web.delete("/v1/buckets/b/collections/c/records/r2")
since = web.get("/v1/buckets/b/collections/c/records?_since=" + before.strip('"')).json["data"]
print("since", sorted((r["id"], r.get("deleted", False)) for r in since))
stale = web.put_json("/v1/buckets/b/collections/c/records/r1", {"data": {}}, headers={"If-Match": before}, status=412)
print("stale", stale.json["errno"])
batch = {"requests": [{"method": "POST", "path": "/v1/buckets/b/collections/c/records", "body": {"data": {"n": n}}}
                      for n in range(20, 25)]}
print("batch", [r["status"] for r in web.post_json("/v1/batch", batch).json["responses"]])
print("count", web.head("/v1/buckets/b/collections/c/records").headers["Total-Objects"])
web.authorization = ("Basic", ("bob", "pw"))
print("denied", web.get("/v1/buckets/b/collections/c/records", status=403).json["code"])
web.authorization = ("Basic", ("alice", "pw"))
web.patch_json("/v1/buckets/b", {"permissions": {"read": ["system.Everyone"]}})
web.authorization = ("Basic", ("bob", "pw"))
print("allowed", len(web.get("/v1/buckets/b/collections/c/records").json["data"]))
web.authorization = ("Basic", ("alice", "pw"))
print("deleted", len(web.delete("/v1/buckets/b/collections/c/records?min_n=20").json["data"]))
