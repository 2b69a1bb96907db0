//! Rows of what users define: `pg_aggregate`, `pg_operator`, `pg_cast`, `pg_opclass`, `pg_opfamily`, `pg_amop`,
//! `pg_amproc` and `pg_conversion` list it.

use types::Datum;

use super::row::{oid, row};
use crate::object::ids::PG_CATALOG;
use crate::object::{AggregateSteps, FamilyFunction, FamilyOperator, Function, Id, UserTypeKind};
use crate::system::cx::SystemCx;

type Out = Vec<Vec<Datum>>;

pub(super) fn aggregates(cx: &SystemCx<'_>, out: &mut Out) {
    out.extend(cx.catalog.functions().filter_map(|f| aggregate(f)));
}

fn aggregate(f: &Function) -> Option<Vec<Datum>> {
    let a = f.aggregate.as_deref()?;
    let none = AggregateSteps { modify: 'r', ..AggregateSteps::default() };
    let (plain, moving) = (&a.plain, a.moving.as_ref().unwrap_or(&none));
    let text = |value: &Option<String>| value.as_deref().map_or(Datum::Null, Datum::text);
    Some(
        row(PG_CATALOG, "pg_aggregate")
            .set("aggfnoid", oid(f.oid))
            .set("aggkind", a.kind)
            .set("aggnumdirectargs", a.direct as i16)
            .set("aggtransfn", oid(plain.transition))
            .set("aggfinalfn", oid(plain.finish))
            .set("aggcombinefn", oid(a.combine))
            .set("aggserialfn", oid(a.serial))
            .set("aggdeserialfn", oid(a.deserial))
            .set("aggmtransfn", oid(moving.transition))
            .set("aggminvtransfn", oid(moving.inverse))
            .set("aggmfinalfn", oid(moving.finish))
            .set("aggfinalextra", plain.extra)
            .set("aggmfinalextra", moving.extra)
            .set("aggfinalmodify", plain.modify)
            .set("aggmfinalmodify", moving.modify)
            .set("aggsortop", oid(a.sort_operator))
            .set("aggtranstype", oid(plain.state))
            .set("aggtransspace", plain.space)
            .set("aggmtranstype", oid(moving.state))
            .set("aggmtransspace", moving.space)
            .set("agginitval", text(&plain.initial))
            .set("aggminitval", text(&moving.initial))
            .done(),
    )
}

pub(super) fn operators(cx: &SystemCx<'_>, out: &mut Out) {
    out.extend(cx.catalog.operators().map(|o| {
        row(PG_CATALOG, "pg_operator")
            .set("oid", oid(o.oid))
            .set("oprname", o.name.as_str())
            .set("oprnamespace", oid(o.schema))
            .set("oprowner", oid(o.owner))
            .set("oprkind", if o.left == 0 { 'l' } else { 'b' })
            .set("oprcanmerge", o.merges)
            .set("oprcanhash", o.hashes)
            .set("oprleft", oid(o.left))
            .set("oprright", oid(o.right))
            .set("oprresult", oid(o.result))
            .set("oprcom", oid(o.commutator))
            .set("oprnegate", oid(o.negator))
            .set("oprcode", oid(o.function))
            .set("oprrest", oid(o.restrict))
            .set("oprjoin", oid(o.join))
            .done()
    }));
}

pub(super) fn casts(cx: &SystemCx<'_>, out: &mut Out) {
    out.extend(cx.catalog.casts().map(|c| {
        row(PG_CATALOG, "pg_cast")
            .set("oid", oid(c.oid))
            .set("castsource", oid(c.source))
            .set("casttarget", oid(c.target))
            .set("castfunc", oid(c.function))
            .set("castcontext", c.context)
            .set("castmethod", c.method)
            .done()
    }));
}

pub(super) fn classes(cx: &SystemCx<'_>, out: &mut Out) {
    out.extend(cx.catalog.operator_classes().map(|c| {
        row(PG_CATALOG, "pg_opclass")
            .set("oid", oid(c.oid))
            .set("opcmethod", oid(c.method))
            .set("opcname", c.name.as_str())
            .set("opcnamespace", oid(c.schema))
            .set("opcowner", oid(c.owner))
            .set("opcfamily", oid(c.family))
            .set("opcintype", oid(c.input))
            .set("opcdefault", c.default)
            .set("opckeytype", oid(c.key))
            .done()
    }));
}

pub(super) fn families(cx: &SystemCx<'_>, out: &mut Out) {
    out.extend(cx.catalog.operator_families().map(|f| {
        row(PG_CATALOG, "pg_opfamily")
            .set("oid", oid(f.oid))
            .set("opfmethod", oid(f.method))
            .set("opfname", f.name.as_str())
            .set("opfnamespace", oid(f.schema))
            .set("opfowner", oid(f.owner))
            .done()
    }));
}

pub(super) fn family_operators(cx: &SystemCx<'_>, out: &mut Out) {
    let one = |o: &FamilyOperator, family: Id, method: Id| {
        row(PG_CATALOG, "pg_amop")
            .set("oid", oid(o.oid))
            .set("amopfamily", oid(family))
            .set("amoplefttype", oid(o.left))
            .set("amoprighttype", oid(o.right))
            .set("amopstrategy", o.number)
            .set("amoppurpose", if o.sort_family == 0 { 's' } else { 'o' })
            .set("amopopr", oid(o.operator))
            .set("amopmethod", oid(method))
            .set("amopsortfamily", oid(o.sort_family))
            .done()
    };
    for c in cx.catalog.operator_classes() {
        out.extend(c.operators.iter().map(|o| one(o, c.family, c.method)));
    }
    for f in cx.catalog.operator_families() {
        out.extend(f.operators.iter().map(|o| one(o, f.oid, f.method)));
    }
}

pub(super) fn family_functions(cx: &SystemCx<'_>, out: &mut Out) {
    let one = |f: &FamilyFunction, family: Id| {
        row(PG_CATALOG, "pg_amproc")
            .set("oid", oid(f.oid))
            .set("amprocfamily", oid(family))
            .set("amproclefttype", oid(f.left))
            .set("amprocrighttype", oid(f.right))
            .set("amprocnum", f.number)
            .set("amproc", oid(f.function))
            .done()
    };
    for c in cx.catalog.operator_classes() {
        out.extend(c.functions.iter().map(|f| one(f, c.family)));
    }
    for family in cx.catalog.operator_families() {
        out.extend(family.functions.iter().map(|f| one(f, family.oid)));
    }
}

pub(super) fn conversions(cx: &SystemCx<'_>, out: &mut Out) {
    out.extend(cx.catalog.conversions().map(|c| {
        row(PG_CATALOG, "pg_conversion")
            .set("oid", oid(c.oid))
            .set("conname", c.name.as_str())
            .set("connamespace", oid(c.schema))
            .set("conowner", oid(c.owner))
            .set("conforencoding", c.from)
            .set("contoencoding", c.to)
            .set("conproc", oid(c.function))
            .set("condefault", c.default)
            .done()
    }));
}

pub(super) fn ranges(cx: &SystemCx<'_>, out: &mut Out) {
    for ty in cx.catalog.user_types() {
        let UserTypeKind::Range(r) = &ty.kind else { continue };
        out.push(
            row(PG_CATALOG, "pg_range")
                .set("rngtypid", oid(ty.oid))
                .set("rngsubtype", oid(r.subtype))
                .set("rngmultitypid", oid(r.multirange))
                .set("rngcollation", oid(r.collation))
                .set("rngsubopc", oid(r.class))
                .set("rngcanonical", oid(r.canonical))
                .set("rngsubdiff", oid(r.diff))
                .done(),
        );
    }
}
