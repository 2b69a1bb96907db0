//! Calls of aggregates and window functions in a view's text.

use catalog::definition::quote_ident;

use super::{Here, direction};
use crate::bind::aggregate::before_json;
use crate::bind::record::WindowNote;
use crate::expr::AggCall;
use crate::window::WindowFunction;

impl Here<'_, '_, '_> {
    /// An aggregate's call.
    pub(super) fn aggregate(&self, agg: &AggCall) -> String {
        let p = self.printer;
        let args = agg.args.iter().map(|a| p.expr(before_json(a), self.indent.get()));
        let args: Vec<String> = args.collect();
        let mut text = match args.is_empty() {
            true => "*".to_owned(),
            false => args.join(", "),
        };
        if agg.distinct {
            text = format!("DISTINCT {text}");
        }
        if !agg.order.is_empty() {
            let keys: Vec<String> = agg
                .order
                .iter()
                .map(|k| {
                    p.sort_expression(&k.expr, self.indent.get())
                        + direction(k.descending, k.nulls_first)
                })
                .collect();
            text = format!("{text} ORDER BY {}", keys.join(", "));
        }
        let name = match &agg.own {
            Some(own) => p.printer(self, self.indent.get()).function_name(own.function, &own.name),
            None => quote_ident(agg.aggregate.name),
        };
        if let Some(direct) = &agg.direct {
            let direct: Vec<String> = direct.iter().map(|a| p.expr(a, self.indent.get())).collect();
            let keys = agg.order.iter().map(|k| {
                p.sort_expression(&k.expr, self.indent.get())
                    + direction(k.descending, k.nulls_first)
            });
            let keys: Vec<String> = keys.collect();
            text = format!("{}) WITHIN GROUP (ORDER BY {}", direct.join(", "), keys.join(", "));
        }
        let mut out = format!("{name}({text})");
        if let Some(filter) = &agg.filter {
            out += &format!(" FILTER (WHERE {})", p.expr(filter, self.indent.get()));
        }
        out
    }

    /// A call with OVER.
    pub(super) fn window_call(&self, note: &WindowNote) -> String {
        let p = self.printer;
        let call = match &note.call.function {
            WindowFunction::Aggregate(agg) => self.aggregate(agg),
            WindowFunction::Own(row) => {
                let args: Vec<String> =
                    note.call.args.iter().map(|a| p.expr(a, self.indent.get())).collect();
                format!("{}({})", quote_ident(row.name), args.join(", "))
            }
        };
        match &note.over {
            Ok(name) => format!("{call} OVER {}", quote_ident(name)),
            Err(spec) => format!("{call} OVER {}", p.window(spec, self.indent.get())),
        }
    }
}
