//! An event of event triggers while it is told to them.

/// An object that a statement has made or changed: a row of `pg_event_trigger_ddl_commands()`.
#[derive(Clone, Debug, Default)]
pub struct Command {
    /// The oid of its catalog; 0: the statement is about no single object.
    pub class: u32,
    /// Its oid.
    pub object: u32,
    /// Command tag.
    pub tag: String,
    /// Its kind.
    pub kind: String,
    /// Its schema.
    pub schema: Option<String>,
    /// Its name in full.
    pub identity: Option<String>,
}

/// An object that a statement has dropped: a row of `pg_event_trigger_dropped_objects()`.
#[derive(Clone, Debug, Default)]
pub struct Dropped {
    /// The oid of its catalog.
    pub class: u32,
    /// Its oid.
    pub object: u32,
    /// A column's number, or 0.
    pub column: i32,
    /// The statement names it.
    pub original: bool,
    /// It goes because something goes that it uses.
    pub normal: bool,
    /// It was a session's own.
    pub temporary: bool,
    /// Its kind.
    pub kind: String,
    /// Its schema.
    pub schema: Option<String>,
    /// Its name, if that is enough beside the schema.
    pub name: Option<String>,
    /// Its name in full.
    pub identity: String,
    /// The same, in parts.
    pub names: Vec<String>,
    /// The types of its arguments.
    pub args: Vec<String>,
}

/// Facts that a function may ask for while an event's triggers fire.
#[derive(Clone, Debug, Default)]
pub struct Event {
    /// The event.
    pub name: &'static str,
    /// Command tag.
    pub tag: String,
    /// At `ddl_command_end`.
    pub commands: Vec<Command>,
    /// At `sql_drop`.
    pub dropped: Vec<Dropped>,
    /// At `table_rewrite`: the table, and why.
    pub rewrite: Option<(u32, i32)>,
}
