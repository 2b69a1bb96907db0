//! `pg_hba.conf` (manual, section 21.1): the first rule that fits a connection says how its client shows
//! who it is.
//!
//! ```text
//!   hostssl   all,other   +staff   10.0.0.0/8   scram-sha-256   clientcert=verify-ca
//!   type      databases   roles    addresses    method          options
//! ```
//! Left out, and an error where they stand: host names (they need look-ups of names), files (`@name`,
//! `include`), GSSAPI, SSPI, LDAP, RADIUS, PAM and ident.

use std::net::IpAddr;

use base::{Error, err};
use catalog::{Rights, Snapshot};
use types::{Datum, oids};

/// How a client shows who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Not at all.
    Trust,
    /// It may not come in.
    Reject,
    /// SCRAM-SHA-256.
    Scram,
    /// An MD5 challenge; SCRAM for those whose password is kept for it.
    Md5,
    /// The password as it is.
    Password,
    /// By the operating system's user, over Unix sockets.
    Peer,
    /// By its certificate.
    Cert,
}

const METHODS: [(&str, Method); 7] = [
    ("trust", Method::Trust),
    ("reject", Method::Reject),
    ("scram-sha-256", Method::Scram),
    ("md5", Method::Md5),
    ("password", Method::Password),
    ("peer", Method::Peer),
    ("cert", Method::Cert),
];

/// The demand on a client's certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientCert {
    /// None is asked for.
    #[default]
    Off,
    /// Signed by an authority that is trusted.
    VerifyCa,
    /// And for this user.
    VerifyFull,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Local,
    Host,
    HostSsl,
    HostNoSsl,
    /// `hostgssenc`: there is no such encryption here.
    Never,
}

/// A word of the file; in quotes it is a name and no keyword.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Word {
    text: String,
    quoted: bool,
}

impl Word {
    fn is(&self, keyword: &str) -> bool {
        !self.quoted && self.text == keyword
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Address {
    /// Of local rules.
    None,
    All,
    SameHost,
    SameNet,
    Net(IpAddr, IpAddr),
}

/// A rule.
#[derive(Clone, Debug)]
pub struct Rule {
    /// The line that it begins on.
    pub line: usize,
    /// The line's text, for the log.
    pub text: String,
    kind: Kind,
    word: String,
    databases: Vec<Word>,
    roles: Vec<Word>,
    address: Address,
    address_text: Option<String>,
    netmask_text: Option<String>,
    /// How the client shows who it is.
    pub method: Method,
    /// The demand on its certificate.
    pub client_cert: ClientCert,
    /// The map of names, of peer and cert.
    pub map: Option<String>,
    options: Vec<String>,
}

/// The whole file: a rule or what is wrong with the line.
#[derive(Clone, Debug, Default)]
pub struct Hba {
    lines: Vec<Result<Rule, (usize, String)>>,
}

/// A connection that wants in.
pub struct Client<'a> {
    /// Its address; None over a Unix socket.
    pub address: Option<IpAddr>,
    /// Whether it is encrypted.
    pub encrypted: bool,
    /// The role that it says it is.
    pub user: &'a str,
    /// The database that it wants.
    pub database: &'a str,
    /// A connection for replication, which only the word `replication` fits.
    pub replication: bool,
}

impl Hba {
    /// Reads the file's text.
    pub fn parse(text: &str) -> Hba {
        let mut lines = Vec::new();
        for (number, line) in logical_lines(text) {
            match split(&line) {
                Ok(fields) if fields.is_empty() => {}
                Ok(fields) => {
                    let rule = rule(number, &line, &fields).map_err(|e| (number, e));
                    lines.push(rule);
                }
                Err(error) => lines.push(Err((number, error))),
            }
        }
        Hba { lines }
    }

    /// The rules.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.lines.iter().filter_map(|l| l.as_ref().ok())
    }

    /// The first fault of the file.
    pub fn first_error(&self) -> Option<Error> {
        let (line, what) = self.lines.iter().find_map(|l| l.as_ref().err())?;
        Some(
            err!(CONFIG_FILE_ERROR, "line {line} of \"{}\": {what}", super::HBA_FILE)
                .hint("correct or remove that line"),
        )
    }

    /// The rule for a client.
    pub fn find(&self, client: &Client<'_>, catalog: &Snapshot) -> Option<&Rule> {
        self.rules().find(|rule| rule.fits(client, catalog))
    }

    /// The rows of `pg_hba_file_rules`.
    pub fn rows(&self) -> Vec<Vec<Datum>> {
        let text = |t: &str| Datum::Text(t.into());
        let optional = |t: &Option<String>| t.as_deref().map_or(Datum::Null, text);
        let words = |words: &[Word]| {
            Datum::array(oids::TEXT, words.iter().map(|w| text(&w.text)).collect())
        };
        let row = |line: &Result<Rule, (usize, String)>| match line {
            Err((number, error)) => {
                let mut row = vec![Datum::Null; 9];
                row[0] = Datum::Int4(*number as i32);
                row[8] = text(error);
                row
            }
            Ok(rule) => {
                let method = METHODS.iter().find(|(_, m)| *m == rule.method).map_or("", |m| m.0);
                let options = rule.options.iter().map(|o| text(o)).collect::<Vec<_>>();
                let options = match options.is_empty() {
                    true => Datum::Null,
                    false => Datum::array(oids::TEXT, options),
                };
                vec![
                    Datum::Int4(rule.line as i32),
                    text(&rule.word),
                    words(&rule.databases),
                    words(&rule.roles),
                    optional(&rule.address_text),
                    optional(&rule.netmask_text),
                    text(method),
                    options,
                    Datum::Null,
                ]
            }
        };
        self.lines.iter().map(row).collect()
    }
}

impl Rule {
    fn fits(&self, client: &Client<'_>, catalog: &Snapshot) -> bool {
        let kind = match self.kind {
            Kind::Local => client.address.is_none(),
            Kind::Host => client.address.is_some(),
            Kind::HostSsl => client.address.is_some() && client.encrypted,
            Kind::HostNoSsl => client.address.is_some() && !client.encrypted,
            Kind::Never => false,
        };
        kind && client.address.is_none_or(|ip| self.address.fits(ip))
            && self.databases.iter().any(|w| fits_database(w, client, catalog))
            && self.roles.iter().any(|w| fits_role(w, client.user, catalog))
    }
}

/// Whether a client's role is a member of another, which need not exist.
fn is_member(user: &str, of: &str, catalog: &Snapshot) -> bool {
    let rights = Rights { catalog, database: 0 };
    match (catalog.role_named(user), catalog.role_named(of)) {
        // Superusers are members of what they were made members of.
        (Some(user), Some(of)) => rights.roles_of(user.oid, false).contains(&of.oid),
        _ => false,
    }
}

fn fits_database(word: &Word, client: &Client<'_>, catalog: &Snapshot) -> bool {
    if client.replication {
        return word.text == "replication" && !word.quoted;
    }
    match word.text.as_str() {
        "all" if !word.quoted => true,
        "sameuser" if !word.quoted => client.database == client.user,
        "samerole" | "samegroup" if !word.quoted => {
            is_member(client.user, client.database, catalog)
        }
        "replication" if !word.quoted => false,
        name => name == client.database,
    }
}

fn fits_role(word: &Word, user: &str, catalog: &Snapshot) -> bool {
    match word.text.strip_prefix('+') {
        Some(group) if !word.quoted => is_member(user, group, catalog),
        _ => word.is("all") || word.text == user,
    }
}

impl Address {
    fn fits(&self, ip: IpAddr) -> bool {
        match self {
            Address::None => false,
            Address::All => true,
            Address::Net(net, mask) => in_net(ip, *net, *mask),
            Address::SameHost => interfaces(|own, _| own == ip),
            Address::SameNet => interfaces(|own, mask| in_net(ip, own, mask)),
        }
    }
}

fn bits(ip: IpAddr) -> (u128, bool) {
    match ip {
        IpAddr::V4(v4) => (u128::from(v4.to_bits()), false),
        IpAddr::V6(v6) => (v6.to_bits(), true),
    }
}

fn in_net(ip: IpAddr, net: IpAddr, mask: IpAddr) -> bool {
    let ((ip, v6), (net, net6), (mask, _)) = (bits(ip), bits(net), bits(mask));
    v6 == net6 && ip & mask == net & mask
}

/// Whether one of this machine's addresses (with its mask) is as wanted.
fn interfaces(wanted: impl Fn(IpAddr, IpAddr) -> bool) -> bool {
    let ip = |s: &nix::sys::socket::SockaddrStorage| {
        let v4 = s.as_sockaddr_in().map(|a| IpAddr::V4(a.ip()));
        v4.or_else(|| s.as_sockaddr_in6().map(|a| IpAddr::V6(a.ip())))
    };
    let Ok(all) = nix::ifaddrs::getifaddrs() else { return false };
    all.into_iter().any(|i| {
        let address = i.address.as_ref().and_then(ip);
        let mask = i.netmask.as_ref().and_then(ip);
        address.zip(mask).is_some_and(|(address, mask)| wanted(address, mask))
    })
}

/// Lines with their numbers; a backslash at the end joins a line with the next.
pub(super) fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut out: Vec<(usize, String)> = Vec::new();
    let mut joins = false;
    for (index, line) in text.lines().enumerate() {
        let (body, continues) = match line.strip_suffix('\\') {
            Some(body) => (body, true),
            None => (line, false),
        };
        match out.last_mut() {
            Some((_, last)) if joins => last.push_str(body),
            _ => out.push((index + 1, body.to_owned())),
        }
        joins = continues;
    }
    out
}

/// The texts of [`split`].
pub(super) fn words(line: &str) -> Result<Vec<Vec<String>>, String> {
    let texts = |field: Vec<Word>| field.into_iter().map(|word| word.text).collect();
    Ok(split(line)?.into_iter().map(texts).collect())
}

/// Fields of a line, each a list of words: blanks separate fields, commas words.
fn split(line: &str) -> Result<Vec<Vec<Word>>, String> {
    let mut fields: Vec<Vec<Word>> = Vec::new();
    let mut chars = line.chars().peekable();
    let mut joins = false;
    loop {
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        match chars.peek() {
            None | Some('#') => return Ok(fields),
            Some(',') => {
                chars.next();
                joins = true;
                continue;
            }
            Some(_) => {}
        }
        let mut word = Word { text: String::new(), quoted: false };
        let mut inside = false;
        while let Some(c) =
            chars.next_if(|c| inside || !(c.is_whitespace() || *c == ',' || *c == '#'))
        {
            match c {
                '"' => {
                    inside = !inside;
                    word.quoted = true;
                }
                c => word.text.push(c),
            }
        }
        if inside {
            return Err("unterminated quoted string".to_owned());
        }
        match fields.last_mut() {
            Some(last) if joins => last.push(word),
            _ => fields.push(vec![word]),
        }
        joins = false;
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        if chars.next_if_eq(&',').is_some() {
            joins = true;
        }
    }
}

fn single<'a>(field: &'a [Word], what: &str) -> Result<&'a Word, String> {
    match field {
        [word] => Ok(word),
        _ => Err(format!("multiple values specified for {what}")),
    }
}

fn rule(line: usize, text: &str, fields: &[Vec<Word>]) -> Result<Rule, String> {
    let mut fields = fields.iter();
    let mut next = |what: &str| fields.next().ok_or_else(|| format!("end-of-line before {what}"));
    let kind_field = next("connection type")?;
    let word = single(kind_field, "connection type")?.text.clone();
    let kind = match word.as_str() {
        "local" => Kind::Local,
        "host" | "hostnogssenc" => Kind::Host,
        "hostssl" => Kind::HostSsl,
        "hostnossl" => Kind::HostNoSsl,
        "hostgssenc" => Kind::Never,
        "include" | "include_if_exists" | "include_dir" => {
            return Err(format!("\"{word}\" is not supported"));
        }
        other => return Err(format!("invalid connection type \"{other}\"")),
    };
    let databases = names(next("database specification")?)?;
    let roles = names(next("role specification")?)?;
    let (mut address, mut address_text, mut netmask_text) = (Address::None, None, None);
    if kind != Kind::Local {
        let field = single(next("IP address specification")?, "host address")?;
        let mask = || Ok(single(next("netmask specification")?, "netmask")?.text.clone());
        (address, address_text, netmask_text) = address_of(field, mask)?;
    }
    let method_word = single(next("authentication method")?, "authentication type")?;
    let method = METHODS.iter().find(|(name, _)| *name == method_word.text).map(|m| m.1);
    let method = method.ok_or_else(|| match method_word.text.as_str() {
        known @ ("gss" | "sspi" | "ident" | "ldap" | "radius" | "pam" | "bsd") => {
            format!("authentication method \"{known}\" is not supported")
        }
        other => format!("invalid authentication method \"{other}\""),
    })?;
    match (method, kind) {
        (Method::Peer, Kind::Local) | (Method::Cert, Kind::HostSsl) => {}
        (Method::Peer, _) => {
            return Err("peer authentication is only supported on local sockets".to_owned());
        }
        (Method::Cert, _) => {
            return Err("cert authentication is only supported on hostssl connections".to_owned());
        }
        _ => {}
    }
    let mut client_cert =
        if method == Method::Cert { ClientCert::VerifyFull } else { ClientCert::Off };
    let (mut options, mut map) = (Vec::new(), None);
    for field in fields {
        let option = &single(field, "authentication option")?.text;
        let (name, value) = option
            .split_once('=')
            .ok_or_else(|| format!("authentication option not in name=value format: {option}"))?;
        match (name, value) {
            ("clientcert", _) if kind != Kind::HostSsl => {
                return Err("clientcert can only be configured for \"hostssl\" rows".to_owned());
            }
            ("clientcert", "verify-ca") if method != Method::Cert => {
                client_cert = ClientCert::VerifyCa;
            }
            ("clientcert", "verify-full") => client_cert = ClientCert::VerifyFull,
            ("clientcert", value) => {
                return Err(format!("invalid value for clientcert: \"{value}\""));
            }
            ("map", name) if matches!(method, Method::Peer | Method::Cert) => {
                map = Some(name.to_owned());
            }
            ("map", _) => {
                let methods = "ident, peer, gssapi, sspi, and cert";
                return Err(format!(
                    "authentication option \"map\" is only valid for authentication methods {methods}"
                ));
            }
            (name, _) => {
                return Err(format!("unrecognized authentication option name: \"{name}\""));
            }
        }
        options.push(option.clone());
    }
    let text = text.trim().to_owned();
    Ok(Rule {
        line,
        text,
        kind,
        word,
        databases,
        roles,
        address,
        address_text,
        netmask_text,
        method,
        client_cert,
        map,
        options,
    })
}

fn names(field: &[Word]) -> Result<Vec<Word>, String> {
    match field.iter().find(|w| !w.quoted && w.text.starts_with('@')) {
        Some(file) => Err(format!("names from a file (\"{}\") are not supported", file.text)),
        None => Ok(field.to_vec()),
    }
}

type AddressFields = (Address, Option<String>, Option<String>);

fn address_of(
    word: &Word,
    mask: impl FnOnce() -> Result<String, String>,
) -> Result<AddressFields, String> {
    for (keyword, address) in
        [("all", Address::All), ("samehost", Address::SameHost), ("samenet", Address::SameNet)]
    {
        if word.is(keyword) {
            return Ok((address, Some(keyword.to_owned()), None));
        }
    }
    let (ip_text, length) = match word.text.split_once('/') {
        Some((ip, length)) => (ip, Some(length)),
        None => (word.text.as_str(), None),
    };
    let Ok(ip) = ip_text.parse::<IpAddr>() else {
        return Err(format!("host name \"{}\" is not supported: use an IP address", word.text));
    };
    let mask = match length {
        Some(length) => {
            let wrong = || format!("invalid CIDR mask in address \"{}\"", word.text);
            mask_of(ip, length.parse().map_err(|_| wrong())?).ok_or_else(wrong)?
        }
        None => {
            let text = mask()?;
            text.parse().map_err(|_| format!("invalid IP mask \"{text}\""))?
        }
    };
    if bits(ip).1 != bits(mask).1 {
        return Err("IP address and mask do not match".to_owned());
    }
    Ok((Address::Net(ip, mask), Some(ip.to_string()), Some(mask.to_string())))
}

/// The mask with so many leading ones.
fn mask_of(ip: IpAddr, length: u32) -> Option<IpAddr> {
    match ip {
        IpAddr::V4(_) if length <= 32 => {
            Some(IpAddr::V4(u32::MAX.checked_shl(32 - length).unwrap_or(0).into()))
        }
        IpAddr::V6(_) if length <= 128 => {
            Some(IpAddr::V6(u128::MAX.checked_shl(128 - length).unwrap_or(0).into()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use catalog::{Membership, Object, Role};

    fn catalog() -> Snapshot {
        let mut catalog = Snapshot::default();
        let mut member = Role::new(100, "alice");
        member.member_of.push(Membership { role: 101, grantor: 10, admin: false });
        catalog.put(Object::Role(member));
        catalog.put(Object::Role(Role::new(101, "staff")));
        catalog.put(Object::Role(Role::new(102, "bob")));
        catalog
    }

    fn line_for(text: &str, address: Option<&str>, encrypted: bool, user: &str, db: &str) -> usize {
        let address = address.map(|a| a.parse().unwrap());
        let client = Client { address, encrypted, user, database: db, replication: false };
        Hba::parse(text).find(&client, &catalog()).map_or(0, |r| r.line)
    }

    #[test]
    fn the_first_rule_that_fits_decides() {
        let text = "# comment\n\
            local   all  bob  peer\n\
            local   sameuser  all  trust # and so on\n\
            hostssl all  +staff  10.0.0.0/8  scram-sha-256\n\
            hostnossl db,\"other\" bob , alice 10.0.0.0 255.0.0.0 md5\n\
            host    samerole all  fd00::/8  reject\n\
            host    all  \"all\"  all  password\n";
        assert!(Hba::parse(text).first_error().is_none());
        assert_eq!(line_for(text, None, false, "bob", "x"), 2);
        assert_eq!(line_for(text, None, false, "alice", "alice"), 3);
        assert_eq!(line_for(text, None, false, "alice", "x"), 0);
        let net = Some("10.1.2.3");
        assert_eq!(line_for(text, net, true, "alice", "x"), 4);
        assert_eq!(line_for(text, net, true, "bob", "x"), 0);
        assert_eq!(line_for(text, net, false, "bob", "db"), 5);
        assert_eq!(line_for(text, net, false, "alice", "other"), 5);
        assert_eq!(line_for(text, Some("11.1.2.3"), false, "alice", "other"), 0);
        assert_eq!(line_for(text, Some("fd01::1"), false, "alice", "staff"), 6);
        assert_eq!(line_for(text, Some("fe80::1"), false, "alice", "staff"), 0);
        assert_eq!(line_for(text, Some("fe80::1"), false, "all", "x"), 7, "a role in quotes");
    }

    #[test]
    fn this_machine_knows_its_own_addresses() {
        let text = "host all all samehost trust";
        assert_eq!(line_for(text, Some("127.0.0.1"), false, "bob", "x"), 1);
        assert_eq!(line_for(text, Some("203.0.113.77"), false, "bob", "x"), 0);
        assert_eq!(line_for("host all all 0.0.0.0/0 trust", Some("9.9.9.9"), false, "b", "x"), 1);
        assert_eq!(line_for("host all all ::/0 trust", Some("9.9.9.9"), false, "b", "x"), 0);
    }

    #[test]
    fn lines_go_on_after_a_backslash_and_keep_their_numbers() {
        let text = "\nlocal all \\\n all trust\nnonsense\n";
        let hba = Hba::parse(text);
        assert_eq!(hba.rules().map(|r| r.line).collect::<Vec<_>>(), [2]);
        let error = hba.first_error().unwrap();
        assert!(error.message().starts_with("line 4 of"), "{error}");
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (line, what) in [
            ("lokal all all trust", "invalid connection type \"lokal\""),
            ("local all", "end-of-line before role specification"),
            ("host all all trust", "host name \"trust\" is not supported: use an IP address"),
            ("host all all 10.0.0.0/33 trust", "invalid CIDR mask in address \"10.0.0.0/33\""),
            ("host all all 10.0.0.0 ffff:: trust", "IP address and mask do not match"),
            ("host all all 10.0.0.0", "end-of-line before netmask specification"),
            ("host all all all peer", "peer authentication is only supported on local sockets"),
            (
                "host all all all cert",
                "cert authentication is only supported on hostssl connections",
            ),
            ("host all all all gss", "authentication method \"gss\" is not supported"),
            ("local all all magic", "invalid authentication method \"magic\""),
            ("local all all trust x", "authentication option not in name=value format: x"),
            ("local all all trust x=y", "unrecognized authentication option name: \"x\""),
            ("local @names all trust", "names from a file (\"@names\") are not supported"),
            ("local \"all all trust", "unterminated quoted string"),
            ("local,host all all trust", "multiple values specified for connection type"),
        ] {
            let hba = Hba::parse(line);
            let error = hba.first_error().map(|e| e.message().to_owned()).unwrap_or_default();
            assert!(error.ends_with(what), "{line}: {error}");
        }
    }
}
