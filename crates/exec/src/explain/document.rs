//! EXPLAIN's output as JSON, YAML or XML: named fields inside each other. The layout is PostgreSQL 15's,
//! line by line, since there are tools that read it so.

use std::borrow::Cow;

/// Fields in their order.
pub type Fields = Vec<(Cow<'static, str>, Value)>;

/// What a field holds.
pub enum Value {
    /// A text.
    Text(String),
    /// A number or a truth value.
    Bare(String),
    /// Several texts.
    Texts(Vec<String>),
    /// Fields of its own.
    Group(Fields),
    /// Groups, and what XML calls each of them.
    Groups(&'static str, Vec<Fields>),
}

impl Value {
    pub fn bare(value: impl ToString) -> Value {
        Value::Bare(value.to_string())
    }
}

/// A JSON string, which is one of YAML, too.
pub fn quote(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len() + 2);
    types::json::write_string(text, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// An array of one object.
pub fn json(fields: &Fields) -> String {
    format!("[\n  {}\n]", json_group(fields, 2))
}

fn json_group(fields: &Fields, indent: usize) -> String {
    let pad = " ".repeat(indent);
    let one = |(name, value): &(Cow<'static, str>, Value)| {
        format!("{pad}  {}: {}", quote(name), json_value(value, indent + 2))
    };
    let fields: Vec<String> = fields.iter().map(one).collect();
    format!("{{\n{}\n{pad}}}", fields.join(",\n"))
}

fn json_value(value: &Value, indent: usize) -> String {
    let pad = " ".repeat(indent);
    match value {
        Value::Text(text) => quote(text),
        Value::Bare(text) => text.clone(),
        Value::Texts(texts) => {
            let texts: Vec<String> = texts.iter().map(|t| quote(t)).collect();
            format!("[{}]", texts.join(", "))
        }
        Value::Group(fields) => json_group(fields, indent),
        Value::Groups(_, groups) if groups.is_empty() => format!("[\n{pad}]"),
        Value::Groups(_, groups) => {
            let one = |fields| format!("{pad}  {}", json_group(fields, indent + 2));
            let groups: Vec<String> = groups.iter().map(one).collect();
            format!("[\n{}\n{pad}]", groups.join(",\n"))
        }
    }
}

/// A list of one mapping.
pub fn yaml(fields: &Fields) -> String {
    format!("- {}", yaml_group(fields, 2))
}

/// Fields at this depth; whoever asks has indented the first.
fn yaml_group(fields: &Fields, indent: usize) -> String {
    let one = |(name, value): &(Cow<'static, str>, Value)| {
        format!("{name}: {}", yaml_value(value, indent + 2))
    };
    let fields: Vec<String> = fields.iter().map(one).collect();
    fields.join(&line_at(indent))
}

fn yaml_value(value: &Value, indent: usize) -> String {
    let line = line_at(indent);
    match value {
        Value::Text(text) => quote(text),
        Value::Bare(text) => text.clone(),
        Value::Texts(texts) => texts.iter().map(|t| format!("{line}- {}", quote(t))).collect(),
        Value::Group(fields) => format!("{line}{}", yaml_group(fields, indent)),
        Value::Groups(_, groups) => {
            groups.iter().map(|g| format!("{line}- {}", yaml_group(g, indent + 2))).collect()
        }
    }
}

fn line_at(indent: usize) -> String {
    format!("\n{}", " ".repeat(indent))
}

/// A document of one query.
pub fn xml(fields: &Fields) -> String {
    let query = xml_group("Query", fields, 2);
    format!("<explain xmlns=\"http://www.postgresql.org/2009/explain\">\n{query}\n</explain>")
}

fn xml_group(name: &str, fields: &Fields, indent: usize) -> String {
    xml_around(name, fields.iter().map(|(name, value)| xml_value(name, value, indent + 2)), indent)
}

fn xml_value(name: &str, value: &Value, indent: usize) -> String {
    let item = |name: &str, text: &str, indent: usize| {
        let (pad, tag) = (" ".repeat(indent), xml_tag(name));
        format!("{pad}<{tag}>{}</{tag}>", xml_text(text))
    };
    match value {
        Value::Text(text) | Value::Bare(text) => item(name, text, indent),
        Value::Texts(texts) => {
            xml_around(name, texts.iter().map(|t| item("Item", t, indent + 2)), indent)
        }
        Value::Group(fields) => xml_group(name, fields, indent),
        Value::Groups(one, groups) => {
            xml_around(name, groups.iter().map(|g| xml_group(one, g, indent + 2)), indent)
        }
    }
}

fn xml_around(name: &str, inside: impl Iterator<Item = String>, indent: usize) -> String {
    let (pad, tag) = (" ".repeat(indent), xml_tag(name));
    let inside: String = inside.map(|text| text + "\n").collect();
    format!("{pad}<{tag}>\n{inside}{pad}</{tag}>")
}

/// A name without what a tag's may not have.
fn xml_tag(name: &str) -> String {
    let may = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    name.chars().map(|c| if may(c) { c } else { '-' }).collect()
}

fn xml_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\r' => out.push_str("&#x0d;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document() -> Fields {
        let plan = || ("Node Type".into(), Value::Text("Seq <Scan>".to_owned()));
        let below = vec![plan(), ("Rows".into(), Value::bare(3))];
        vec![
            (
                "Plan".into(),
                Value::Group(vec![
                    plan(),
                    ("Sort Key".into(), Value::Texts(vec!["a".to_owned(), "b DESC".to_owned()])),
                    ("Plans".into(), Value::Groups("Plan", vec![below])),
                ]),
            ),
            ("Triggers".into(), Value::Groups("Trigger", vec![])),
            ("I/O Time".into(), Value::bare(0.5)),
        ]
    }

    #[test]
    fn as_json() {
        let text = r#"[
  {
    "Plan": {
      "Node Type": "Seq <Scan>",
      "Sort Key": ["a", "b DESC"],
      "Plans": [
        {
          "Node Type": "Seq <Scan>",
          "Rows": 3
        }
      ]
    },
    "Triggers": [
    ],
    "I/O Time": 0.5
  }
]"#;
        assert_eq!(json(&document()), text);
    }

    #[test]
    fn as_yaml() {
        let lines = [
            "- Plan: ",
            "    Node Type: \"Seq <Scan>\"",
            "    Sort Key: ",
            "      - \"a\"",
            "      - \"b DESC\"",
            "    Plans: ",
            "      - Node Type: \"Seq <Scan>\"",
            "        Rows: 3",
            "  Triggers: ",
            "  I/O Time: 0.5",
        ];
        assert_eq!(yaml(&document()), lines.join("\n"));
    }

    #[test]
    fn as_xml() {
        let text = r#"<explain xmlns="http://www.postgresql.org/2009/explain">
  <Query>
    <Plan>
      <Node-Type>Seq &lt;Scan&gt;</Node-Type>
      <Sort-Key>
        <Item>a</Item>
        <Item>b DESC</Item>
      </Sort-Key>
      <Plans>
        <Plan>
          <Node-Type>Seq &lt;Scan&gt;</Node-Type>
          <Rows>3</Rows>
        </Plan>
      </Plans>
    </Plan>
    <Triggers>
    </Triggers>
    <I-O-Time>0.5</I-O-Time>
  </Query>
</explain>"#;
        assert_eq!(xml(&document()), text);
    }

    #[test]
    fn strings_are_escaped() {
        assert_eq!(quote("a\"b\\\n\u{1}"), "\"a\\\"b\\\\\\n\\u0001\"");
    }
}
