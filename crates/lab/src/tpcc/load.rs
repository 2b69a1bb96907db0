//! The initial population (clause 4.3.3), sent as COPY.

use std::io::Write as _;

use super::Sizes;
use super::random::{Random, last_name};
use super::schema;
use crate::Result;
use crate::driver::Connection;

/// Bytes of a block that is sent at once.
const BLOCK: usize = 256 * 1024;

/// The time of everything that is loaded.
const LOADED: &str = "2024-01-01 00:00:00";

/// Makes the tables, their rows, keys, and procedures.
///
/// # Errors
/// A statement fails.
pub fn load(connection: &mut Connection, sizes: &Sizes, foreign_keys: bool) -> Result<()> {
    statements(connection, schema::TABLES)?;
    let mut random = Random::new(1);
    copy(connection, "item", 1..=sizes.items, |id, out| item(&mut random, id, out))?;
    let warehouses = 1..=sizes.warehouses;
    copy(connection, "warehouse", warehouses.clone(), |w, out| {
        warehouse(&mut random, sizes, w, out);
    })?;
    copy(connection, "district", warehouses.clone(), |w, out| {
        for d in 1..=sizes.districts {
            district(&mut random, sizes, w, d, out);
        }
    })?;
    for w in warehouses {
        copy(connection, "stock", 1..=sizes.items, |i, out| stock(&mut random, w, i, out))?;
        let districts = 1..=sizes.districts;
        let per_district = |d: i64| move |n: i64| (d, n);
        let customers: Vec<(i64, i64)> =
            districts.clone().flat_map(|d| (1..=sizes.customers).map(per_district(d))).collect();
        copy(connection, "customer", customers.iter(), |(d, c), out| {
            customer(&mut random, w, *d, *c, out);
        })?;
        copy(connection, "history", customers.iter(), |(d, c), out| {
            line(out, format_args!("{c}\t{d}\t{w}\t{d}\t{w}\t{LOADED}\t10.00\t"));
            text(&mut random, out, 12, 24);
            end(out);
        })?;
        let orders: Vec<Order> = districts.flat_map(|d| orders(&mut random, sizes, d)).collect();
        copy(connection, "orders", orders.iter(), |o, out| order(&mut random, w, o, out))?;
        copy(connection, "new_order", orders.iter().filter(|o| !o.delivered), |o, out| {
            line(out, format_args!("{}\t{}\t{w}\n", o.id, o.district));
        })?;
        copy(connection, "order_line", orders.iter(), |o, out| {
            for number in 1..=o.lines {
                order_line(&mut random, sizes, w, o, number, out);
            }
        })?;
    }
    statements(connection, schema::KEYS)?;
    if foreign_keys {
        statements(connection, schema::FOREIGN_KEYS)?;
    }
    for procedure in schema::procedures() {
        connection.query(&procedure)?;
    }
    connection.query("VACUUM ANALYZE")?;
    connection.query("CHECKPOINT")?;
    Ok(())
}

/// Runs statements that stand between semicolons.
fn statements(connection: &mut Connection, all: &str) -> Result<()> {
    for statement in all.split(';') {
        connection.query(statement)?;
    }
    Ok(())
}

/// Sends what `row` makes of each element in blocks.
fn copy<T>(
    connection: &mut Connection,
    table: &str,
    mut elements: impl Iterator<Item = T>,
    mut row: impl FnMut(T, &mut Vec<u8>),
) -> Result<()> {
    let blocks = std::iter::from_fn(|| {
        let mut block = Vec::with_capacity(BLOCK + 8192);
        for element in elements.by_ref() {
            row(element, &mut block);
            if block.len() >= BLOCK {
                break;
            }
        }
        (!block.is_empty()).then_some(block)
    });
    Ok(connection.copy(table, blocks)?)
}

fn line(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    let written = out.write_fmt(text);
    debug_assert!(written.is_ok(), "a vector takes everything");
}

fn tab(out: &mut Vec<u8>) {
    out.push(b'\t');
}

fn end(out: &mut Vec<u8>) {
    out.push(b'\n');
}

fn text(random: &mut Random, out: &mut Vec<u8>, low: i64, high: i64) {
    random.letters(out, low, high);
}

/// A tenth of the texts hold the word "ORIGINAL".
fn data(random: &mut Random, out: &mut Vec<u8>) {
    let start = out.len();
    text(random, out, 26, 50);
    if random.percent(10) {
        let at = start + random.uniform(0, (out.len() - start - 8) as i64) as usize;
        out[at..at + 8].copy_from_slice(b"ORIGINAL");
    }
}

/// Street 1, street 2, city, state, zip.
fn address(random: &mut Random, out: &mut Vec<u8>) {
    for _ in 0..3 {
        text(random, out, 10, 20);
        tab(out);
    }
    text(random, out, 2, 2);
    tab(out);
    random.digits(out, 4);
    out.extend_from_slice(b"11111\t");
}

fn item(random: &mut Random, id: i64, out: &mut Vec<u8>) {
    line(out, format_args!("{id}\t{}\t", random.uniform(1, 10_000)));
    text(random, out, 14, 24);
    let price = random.uniform(100, 10_000);
    line(out, format_args!("\t{}.{:02}\t", price / 100, price % 100));
    data(random, out);
    end(out);
}

fn warehouse(random: &mut Random, sizes: &Sizes, id: i64, out: &mut Vec<u8>) {
    line(out, format_args!("{id}\t"));
    text(random, out, 6, 10);
    tab(out);
    address(random, out);
    let ytd = sizes.customers * sizes.districts * 10;
    line(out, format_args!("0.{:04}\t{ytd}.00\n", random.uniform(0, 2000)));
}

fn district(random: &mut Random, sizes: &Sizes, w: i64, d: i64, out: &mut Vec<u8>) {
    line(out, format_args!("{d}\t{w}\t"));
    text(random, out, 6, 10);
    tab(out);
    address(random, out);
    let (tax, ytd) = (random.uniform(0, 2000), sizes.customers * 10);
    line(out, format_args!("0.{tax:04}\t{ytd}.00\t{}\n", sizes.customers + 1));
}

fn stock(random: &mut Random, w: i64, item: i64, out: &mut Vec<u8>) {
    line(out, format_args!("{item}\t{w}\t{}\t", random.uniform(10, 100)));
    for _ in 0..10 {
        text(random, out, 24, 24);
        tab(out);
    }
    out.extend_from_slice(b"0\t0\t0\t");
    data(random, out);
    end(out);
}

fn customer(random: &mut Random, w: i64, d: i64, c: i64, out: &mut Vec<u8>) {
    line(out, format_args!("{c}\t{d}\t{w}\t"));
    text(random, out, 8, 16);
    let last = if c <= 1000 { last_name(c - 1) } else { random.last_name_of_load() };
    line(out, format_args!("\tOE\t{last}\t"));
    address(random, out);
    random.digits(out, 16);
    let credit = if random.percent(10) { "BC" } else { "GC" };
    let discount = random.uniform(0, 5000);
    line(
        out,
        format_args!("\t{LOADED}\t{credit}\t50000.00\t0.{discount:04}\t-10.00\t10.00\t1\t0\t"),
    );
    text(random, out, 300, 500);
    end(out);
}

/// An order of a district.
struct Order {
    district: i64,
    id: i64,
    customer: i64,
    lines: i64,
    delivered: bool,
}

/// The district's orders: one of each customer, in random order.
fn orders(random: &mut Random, sizes: &Sizes, district: i64) -> Vec<Order> {
    let mut customers: Vec<i64> = (1..=sizes.customers).collect();
    random.shuffle(&mut customers);
    let order = |(id, customer): (i64, i64)| Order {
        district,
        id,
        customer,
        lines: random.uniform(5, 15),
        delivered: id <= sizes.delivered(),
    };
    (1..).zip(customers).map(order).collect()
}

fn order(random: &mut Random, w: i64, order: &Order, out: &mut Vec<u8>) {
    line(
        out,
        format_args!("{}\t{}\t{w}\t{}\t{LOADED}\t", order.id, order.district, order.customer),
    );
    match order.delivered {
        true => line(out, format_args!("{}", random.uniform(1, 10))),
        false => out.extend_from_slice(b"\\N"),
    }
    line(out, format_args!("\t{}\t1\n", order.lines));
}

fn order_line(
    random: &mut Random,
    sizes: &Sizes,
    w: i64,
    order: &Order,
    number: i64,
    out: &mut Vec<u8>,
) {
    let item = random.uniform(1, sizes.items);
    line(out, format_args!("{}\t{}\t{w}\t{number}\t{item}\t{w}\t", order.id, order.district));
    match order.delivered {
        true => line(out, format_args!("{LOADED}\t5\t0.00\t")),
        false => {
            let amount = random.uniform(1, 999_999);
            line(out, format_args!("\\N\t5\t{}.{:02}\t", amount / 100, amount % 100));
        }
    }
    text(random, out, 24, 24);
    end(out);
}
