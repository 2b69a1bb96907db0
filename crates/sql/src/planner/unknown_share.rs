//! Shares of rows by conditions of which nothing is known.

use types::func::{Body, FunctionRow};

/// The share of rows that have an element of which nothing is known (DEFAULT_CONTAIN_SEL of PostgreSQL).
pub(super) const DEFAULT_CONTAINS: f64 = 0.005;
/// The same for a lexeme (DEFAULT_TS_MATCH_SEL).
pub(super) const DEFAULT_LEXEME: f64 = 0.005;

/// The share of rows that an operator's condition keeps of which nothing is known, as PostgreSQL has it for the
/// operator's estimator (`oprrest`); None for users' functions, whatever their names are, and others.
pub(super) fn default_share(function: &FunctionRow) -> Option<f64> {
    if matches!(function.body, Body::User) {
        return None;
    }
    Some(match function.name {
        "ts_match_vq" | "ts_match_qv" => DEFAULT_LEXEME,
        "arraycontains" | "arraycontained" => DEFAULT_CONTAINS,
        "arrayoverlap" | "range_overlaps" | "ts_match_tt" | "ts_match_tq" | "network_overlap" => {
            0.01
        }
        "range_contains"
        | "range_contained_by"
        | "range_contains_elem"
        | "network_sub"
        | "elem_contained_by_range"
        | "network_subeq"
        | "network_sup"
        | "network_supeq" => 0.005,
        "box_contain"
        | "box_contain_pt"
        | "box_contained"
        | "circle_contain"
        | "circle_contain_pt"
        | "circle_contained"
        | "on_pb"
        | "poly_contain"
        | "poly_contain_pt"
        | "poly_contained"
        | "pt_contained_circle"
        | "pt_contained_poly" => 0.001,
        "box_overlap" | "circle_overlap" | "poly_overlap" => 0.005,
        "textregexeq" | "nameregexeq" | "texticregexeq" => 0.01,
        name if name.starts_with("jsonb_") => 0.01,
        _ => return None,
    })
}
