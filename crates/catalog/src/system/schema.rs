//! Schemas, databases, roles and the other small tables.

use std::collections::HashSet;

use base::Result;
use types::Datum;

use super::facts;
use super::row::{array, oid, row};
use crate::object::ids::{PG_CATALOG, PG_DEFAULT, SUPERUSER};
use crate::object::{AclKind, Comment, Id};
use crate::snapshot::Snapshot;
use crate::system::acl_rows::stored_acl;
use crate::system::class;
use crate::system::classes::kind_of;
use crate::system::cx::SystemCx;
use crate::system::named::{
    ACCESS_METHODS, JAVA, JAVASCRIPT, LANGUAGES, PLPGSQL, PLPGSQL_EXTENSION, TABLESPACES, WASM,
};

type Rows = Result<Vec<Vec<Datum>>>;

pub(super) fn pg_namespace(cx: &SystemCx<'_>) -> Rows {
    let one = |s: &crate::object::Schema| {
        row(PG_CATALOG, "pg_namespace")
            .set("oid", oid(s.oid))
            .set("nspname", s.name.as_str())
            .set("nspowner", oid(s.owner))
            .set("nspacl", stored_acl(cx, AclKind::Schema, s.oid, 0))
            .done()
    };
    Ok(cx.catalog.schemas().map(|s| one(s)).collect())
}

pub(super) fn pg_database(cx: &SystemCx<'_>) -> Rows {
    let one = |d: &crate::object::Database| {
        row(PG_CATALOG, "pg_database")
            .set("oid", oid(d.oid))
            .set("datname", d.name.as_str())
            .set("datdba", oid(d.owner))
            .set("encoding", 6)
            .set("datlocprovider", 'c')
            .set("datistemplate", d.template)
            .set("datallowconn", d.connect)
            .set("datconnlimit", d.connection_limit)
            .set("datfrozenxid", oid(3))
            .set("datminmxid", oid(1))
            .set("dattablespace", oid(PG_DEFAULT))
            .set("datcollate", d.collate.as_str())
            .set("datctype", d.ctype.as_str())
            .set("datacl", stored_acl(cx, AclKind::Database, d.oid, 0))
            .done()
    };
    Ok(cx.catalog.databases().map(|d| one(d)).collect())
}

pub(super) fn pg_extension(cx: &SystemCx<'_>) -> Rows {
    let plpgsql = row(PG_CATALOG, "pg_extension")
        .set("oid", oid(PLPGSQL_EXTENSION))
        .set("extname", "plpgsql")
        .set("extowner", oid(SUPERUSER))
        .set("extnamespace", oid(PG_CATALOG))
        .set("extrelocatable", false)
        .set("extversion", "1.0");
    let mut out = vec![plpgsql.done()];
    out.extend(cx.catalog.extensions().map(|e| {
        let mut row = row(PG_CATALOG, "pg_extension")
            .set("oid", oid(e.oid))
            .set("extname", e.name.as_str())
            .set("extowner", oid(e.owner))
            .set("extnamespace", oid(e.schema))
            .set("extrelocatable", e.relocatable)
            .set("extversion", e.version.as_str());
        if !e.config.is_empty() {
            let ids = e.config.iter().map(|(id, _)| oid(*id)).collect();
            let conditions = e.config.iter().map(|(_, c)| Datum::text(c)).collect();
            row = row.set("extconfig", array(types::oids::OID, 1, ids));
            row = row.set("extcondition", array(types::oids::TEXT, 1, conditions));
        }
        row.done()
    }));
    Ok(out)
}

pub(super) fn pg_tablespace(_cx: &SystemCx<'_>) -> Rows {
    let one = |(id, name): &(u32, &str)| {
        row(PG_CATALOG, "pg_tablespace")
            .set("oid", oid(*id))
            .set("spcname", *name)
            .set("spcowner", oid(SUPERUSER))
            .done()
    };
    Ok(TABLESPACES.iter().map(one).collect())
}

pub(super) fn pg_am(cx: &SystemCx<'_>) -> Rows {
    // Those of extensions are there with them.
    let is_there = |(_, name, ..): &&(u32, &str, u32, char)| {
        let extension = base::AccessMethod::named(name).and_then(base::AccessMethod::extension);
        extension.is_none_or(|extension| cx.catalog.extension_named(extension).is_some())
    };
    let one = |(id, name, handler, kind): &(u32, &str, u32, char)| {
        row(PG_CATALOG, "pg_am")
            .set("oid", oid(*id))
            .set("amname", *name)
            .set("amhandler", oid(*handler))
            .set("amtype", *kind)
            .done()
    };
    let own = cx.catalog.named_methods().map(|m| {
        row(PG_CATALOG, "pg_am")
            .set("oid", oid(m.oid))
            .set("amname", m.name.as_str())
            .set("amhandler", oid(m.handler))
            .set("amtype", m.kind)
            .done()
    });
    Ok(ACCESS_METHODS.iter().filter(is_there).map(one).chain(own).collect())
}

pub(super) fn pg_language(cx: &SystemCx<'_>) -> Rows {
    let one = |(id, name, trusted, [handler, inline, validator]): &(u32, &str, bool, [u32; 3])| {
        row(PG_CATALOG, "pg_language")
            .set("oid", oid(*id))
            .set("lanname", *name)
            .set("lanowner", oid(SUPERUSER))
            .set("lanispl", matches!(*id, PLPGSQL | JAVASCRIPT | WASM | JAVA))
            .set("lanpltrusted", *trusted)
            .set("lanplcallfoid", oid(*handler))
            .set("laninline", oid(*inline))
            .set("lanvalidator", oid(*validator))
            .set("lanacl", stored_acl(cx, AclKind::Language, *id, 0))
            .done()
    };
    let has_java = cx.catalog.extension_named("java").is_some();
    Ok(LANGUAGES.iter().filter(|l| l.0 != JAVA || has_java).map(one).collect())
}

/// The class of what a comment is about.
pub fn commented_class(catalog: &Snapshot, comment: &Comment) -> Id {
    match comment.class {
        0 => kind_of(catalog, comment.object),
        class => class,
    }
}

/// Whether objects of this class belong to all databases.
pub fn is_shared_class(class: Id) -> bool {
    matches!(class, class::ROLE | class::DATABASE | class::TABLESPACE)
}

pub(super) fn pg_description(cx: &SystemCx<'_>) -> Rows {
    let one = |object: Id, class: Id, column: u16, text: &str| {
        row(PG_CATALOG, "pg_description")
            .set("objoid", oid(object))
            .set("classoid", oid(class))
            .set("objsubid", i32::from(column))
            .set("description", text)
            .done()
    };
    let builtin = facts::descriptions().filter(|(class, _, _)| !is_shared_class(*class));
    let own = comments(cx, false);
    let hidden: HashSet<(Id, Id)> =
        own.iter().filter(|(c, _)| c.column == 0).map(|(c, class)| (*class, c.object)).collect();
    let builtin = builtin.filter(|(class, object, _)| !hidden.contains(&(*class, *object)));
    let own = own.iter().filter(|(c, _)| !c.text.is_empty());
    Ok(builtin
        .map(|(class, object, text)| one(object, class, 0, text))
        .chain(own.map(|(c, class)| one(c.object, *class, c.column, &c.text)))
        .collect())
}

/// Comments with their objects' classes. An empty one takes the place of a description that is built in.
fn comments<'c>(cx: &SystemCx<'c>, shared: bool) -> Vec<(&'c Comment, Id)> {
    let all = cx.catalog.comments().filter(|c| c.shared == shared);
    all.map(|c| (&**c, commented_class(cx.catalog, c))).collect()
}

pub(super) fn pg_shdescription(cx: &SystemCx<'_>) -> Rows {
    let one = |object: Id, class: Id, text: &str| {
        row(PG_CATALOG, "pg_shdescription")
            .set("objoid", oid(object))
            .set("classoid", oid(class))
            .set("description", text)
            .done()
    };
    let builtin = facts::descriptions().filter(|(class, _, _)| is_shared_class(*class));
    let own = comments(cx, true);
    let builtin = builtin
        .filter(|(class, object, _)| !own.iter().any(|(c, of)| (of, c.object) == (class, *object)));
    let shown = own.iter().filter(|(c, _)| !c.text.is_empty());
    Ok(builtin
        .map(|(class, object, text)| one(object, class, text))
        .chain(shown.map(|(c, class)| one(c.object, *class, &c.text)))
        .collect())
}
