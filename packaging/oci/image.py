"""An image in the OCI layout from a base root and a folder of ours, with nothing but files.

image.py VERSION BASE.tar LAYER_FOLDER IMAGE.tar

    oci-layout   index.json ─▶ manifest ─▶ config
                                        └▶ layers: base, ours        (all in blobs/sha256, named by their hashes)

Names, variables and volumes are those of PostgreSQL's official image, so that a compose file for it needs another image's name and
nothing else.
"""

import gzip
import hashlib
import io
import json
import os
import sys
import tarfile
import time

USER, UID = "postgres", 999
DATA = "/var/lib/postgresql/data"
SECOND = 1_000_000_000
EPOCH = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))


class Blobs:
    """The contents of blobs/sha256."""

    def __init__(self) -> None:
        self.by_digest: dict[str, bytes] = {}

    def add(self, content: bytes, media_type: str) -> dict:
        digest = hashlib.sha256(content).hexdigest()
        self.by_digest[digest] = content
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(content)}


def add_text(layer: tarfile.TarFile, name: str, text: str, mode: int = 0o644) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.mtime = len(text.encode()), mode, EPOCH
    layer.addfile(info, io.BytesIO(text.encode()))


def accounts(base: str) -> dict[str, str]:
    """The base's lists of users and groups, with ours."""
    with tarfile.open(base) as root:
        def text(name: str) -> str:
            return root.extractfile(root.getmember(name)).read().decode()

        return {
            "etc/passwd": text("./etc/passwd") + f"{USER}:x:{UID}:{UID}::/var/lib/postgresql:/bin/bash\n",
            "etc/group": text("./etc/group") + f"{USER}:x:{UID}:\n",
        }


def own_layer(base: str, folder: str) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as layer:
        for name, text in accounts(base).items():
            add_text(layer, name, text)
        for at, folders, files in sorted(os.walk(folder)):
            folders.sort()
            for name in sorted([*folders, *files]):
                path = os.path.join(at, name)
                info = layer.gettarinfo(path, os.path.relpath(path, folder))
                info.uid = info.gid = UID if info.name.startswith("var/lib/postgresql") else 0
                info.uname = info.gname = ""
                info.mtime = EPOCH
                with open(path, "rb") if info.isfile() else io.BytesIO() as content:
                    layer.addfile(info, content if info.isfile() else None)
        sockets = tarfile.TarInfo("run/postgresql")
        sockets.type, sockets.mode, sockets.uid, sockets.gid, sockets.mtime = tarfile.DIRTYPE, 0o3777, UID, UID, EPOCH
        layer.addfile(sockets)
    return out.getvalue()


def config(version: str, layers: list[bytes]) -> dict:
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(EPOCH))
    return {
        "created": created,
        "architecture": "amd64",
        "os": "linux",
        "config": {
            "Env": [
                "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                "LANG=C.UTF-8",
                f"PGDATA={DATA}",
                f"THREADGRES_VERSION={version}",
            ],
            "Entrypoint": ["docker-entrypoint.sh"],
            "Cmd": ["threadgres"],
            "ExposedPorts": {"5432/tcp": {}},
            "Volumes": {DATA: {}},
            # A fast stop: sessions are ended, everything is written.
            "StopSignal": "SIGINT",
            # Docker's own addition to the form; other runtimes leave it out.
            "Healthcheck": {
                "Test": ["CMD", "docker-healthcheck.sh"],
                "Interval": 10 * SECOND,
                "Timeout": 5 * SECOND,
                "StartPeriod": 60 * SECOND,
                "Retries": 3,
            },
            "Labels": {
                "org.opencontainers.image.title": "threadgres",
                "org.opencontainers.image.version": version,
                "org.opencontainers.image.licenses": "Apache-2.0",
            },
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}" for layer in layers]},
        "history": [
            {"created": created, "created_by": "mmdebstrap"},
            {"created": created, "created_by": "packaging/oci/image.py"},
        ],
    }


def main(version: str, base: str, folder: str, image: str) -> None:
    with open(base, "rb") as root:
        layers = [root.read(), own_layer(base, folder)]
    blobs = Blobs()
    kind = "application/vnd.oci.image.{}"
    descriptors = [
        blobs.add(gzip.compress(layer, 6, mtime=0), kind.format("layer.v1.tar+gzip")) for layer in layers
    ]
    about = json.dumps(config(version, layers)).encode()
    manifest = {
        "schemaVersion": 2,
        "mediaType": kind.format("manifest.v1+json"),
        "config": blobs.add(about, kind.format("config.v1+json")),
        "layers": descriptors,
    }
    entry = blobs.add(json.dumps(manifest).encode(), kind.format("manifest.v1+json"))
    entry["annotations"] = {
        "org.opencontainers.image.ref.name": version,
        "io.containerd.image.name": f"docker.io/library/threadgres:{version}",
    }
    entry["platform"] = {"architecture": "amd64", "os": "linux"}
    index = {"schemaVersion": 2, "mediaType": kind.format("index.v1+json"), "manifests": [entry]}
    with tarfile.open(image, "w", format=tarfile.USTAR_FORMAT) as out:
        add_text(out, "oci-layout", json.dumps({"imageLayoutVersion": "1.0.0"}))
        add_text(out, "index.json", json.dumps(index))
        for digest, content in sorted(blobs.by_digest.items()):
            info = tarfile.TarInfo(f"blobs/sha256/{digest}")
            info.size, info.mode, info.mtime = len(content), 0o644, EPOCH
            out.addfile(info, io.BytesIO(content))


if __name__ == "__main__":
    main(*sys.argv[1:])
