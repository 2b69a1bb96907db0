//! The five transactions (clauses 2.4 to 2.8), their statements as clients write them: joins, IN lists over one
//! column and over two, batched inserts, locked reads.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::Sizes;
use super::random::Random;
use super::session::{Session, Value};
use crate::driver::Failure;
use crate::driver::connection::Rows;

/// Which transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An order is taken.
    NewOrder,
    /// A customer pays.
    Payment,
    /// A customer asks for the last order.
    OrderStatus,
    /// The oldest new order of each district is delivered.
    Delivery,
    /// How many of the lately ordered items are short.
    StockLevel,
}

impl Kind {
    /// All of them with their share in percent, keying time and mean think time in seconds.
    pub const ALL: [(Kind, i64, f64, f64); 5] = [
        (Kind::NewOrder, 45, 18.0, 12.0),
        (Kind::Payment, 43, 3.0, 12.0),
        (Kind::OrderStatus, 4, 2.0, 10.0),
        (Kind::Delivery, 4, 2.0, 5.0),
        (Kind::StockLevel, 4, 2.0, 5.0),
    ];
}

/// How a transaction ended that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Committed.
    Committed,
    /// Rolled back, as one in a hundred orders must be.
    RolledBack,
}

/// A terminal: its place, and what it needs to run transactions.
pub struct Terminal<'a> {
    /// Its connection.
    pub session: Session,
    /// Its random numbers.
    pub random: Random,
    /// How large the tables are.
    pub sizes: &'a Sizes,
    /// Its warehouse.
    pub warehouse: i64,
}

/// An item of an order.
struct Line {
    item: i64,
    supply: i64,
    quantity: i64,
}

/// The customer, and how it is found.
struct Customer {
    warehouse: i64,
    district: i64,
    /// By number; 0: by name.
    id: i64,
    last: String,
}

impl Terminal<'_> {
    /// Draws a transaction by the mix.
    pub fn draw(&mut self) -> Kind {
        let mut at = self.random.uniform(1, 100);
        for (kind, share, _, _) in Kind::ALL {
            if at <= share {
                return kind;
            }
            at -= share;
        }
        Kind::StockLevel
    }

    /// Runs one transaction with new input.
    ///
    /// # Errors
    /// A statement's. The transaction is rolled back then, if the connection still works.
    pub fn run(&mut self, kind: Kind) -> Result<End, Failure> {
        let result = match kind {
            Kind::NewOrder => self.new_order(),
            Kind::Payment => self.payment().map(|()| End::Committed),
            Kind::OrderStatus => self.order_status().map(|()| End::Committed),
            Kind::Delivery => self.delivery().map(|()| End::Committed),
            Kind::StockLevel => self.stock_level().map(|()| End::Committed),
        };
        if result.is_err() && !self.session.calls_procedures() {
            self.session.command("ROLLBACK")?;
        }
        result
    }

    fn district(&mut self) -> i64 {
        self.random.uniform(1, self.sizes.districts)
    }

    /// The items of an order, no two the same, by their numbers: so no two orders lock them in another order.
    fn lines(&mut self) -> Vec<Line> {
        let count = self.random.uniform(5, 15) as usize;
        let mut lines: Vec<Line> = Vec::with_capacity(count);
        while lines.len() < count {
            let item = self.random.item(self.sizes.items);
            if lines.iter().any(|line| line.item == item) {
                continue;
            }
            let mut supply = self.warehouse;
            if self.sizes.warehouses > 1 && self.random.percent(1) {
                supply = self.other_warehouse();
            }
            lines.push(Line { item, supply, quantity: self.random.uniform(1, 10) });
        }
        lines.sort_by_key(|line| line.item);
        // One order in a hundred names an item that does not exist.
        if self.random.percent(1)
            && let Some(last) = lines.last_mut()
        {
            last.item = self.sizes.items + 1;
        }
        lines
    }

    fn other_warehouse(&mut self) -> i64 {
        let other = self.random.uniform(1, self.sizes.warehouses - 1);
        if other < self.warehouse { other } else { other + 1 }
    }

    fn new_order(&mut self) -> Result<End, Failure> {
        let (w, d) = (self.warehouse, self.district());
        let c = self.random.customer(self.sizes.customers);
        let lines = self.lines();
        let session = &mut self.session;
        if session.calls_procedures() {
            let call = "CALL tpcc_new_order($1, $2, $3, $4, $5, $6)";
            let list = |of: fn(&Line) -> i64| Value::Text(array(lines.iter().map(of)));
            let values = [
                w.into(),
                d.into(),
                c.into(),
                list(|l| l.item),
                list(|l| l.supply),
                list(|l| l.quantity),
            ];
            return match session.query(call, &values) {
                Ok(_) => Ok(End::Committed),
                Err(failure) if failure.code == "P0002" => Ok(End::RolledBack),
                Err(failure) => Err(failure),
            };
        }
        session.command("BEGIN")?;
        session.query(
            "SELECT c_discount, c_last, c_credit, w_tax FROM customer, warehouse \
             WHERE w_id = $1 AND c_w_id = w_id AND c_d_id = $2 AND c_id = $3",
            &[w.into(), d.into(), c.into()],
        )?;
        let rows = session.query(
            "SELECT d_next_o_id, d_tax FROM district WHERE d_w_id = $1 AND d_id = $2 FOR UPDATE",
            &[w.into(), d.into()],
        )?;
        let order = int(&rows, 0, 0)?;
        session.query(
            "UPDATE district SET d_next_o_id = $1 + 1 WHERE d_w_id = $2 AND d_id = $3",
            &[order.into(), w.into(), d.into()],
        )?;
        let local = i64::from(lines.iter().all(|line| line.supply == w));
        session.query(
            "INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) \
             VALUES ($1, $2, $3, $4, localtimestamp, $5, $6)",
            &[
                order.into(),
                d.into(),
                w.into(),
                c.into(),
                (lines.len() as i64).into(),
                local.into(),
            ],
        )?;
        session.query(
            "INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES ($1, $2, $3)",
            &[order.into(), d.into(), w.into()],
        )?;
        let items: Vec<Value> = lines.iter().map(|line| line.item.into()).collect();
        let sql = format!(
            "SELECT i_id, i_price, i_name, i_data FROM item WHERE i_id IN {}",
            places(1, items.len())
        );
        let rows = session.query(&sql, &items)?;
        if rows.len() < lines.len() {
            session.command("ROLLBACK")?;
            return Ok(End::RolledBack);
        }
        let prices = by_number(&rows, |row| cents(&rows, row, 1))?;
        let pairs: Vec<Value> =
            lines.iter().flat_map(|line| [line.supply.into(), line.item.into()]).collect();
        let sql = format!(
            "SELECT s_i_id, s_quantity, s_data, s_dist_{d:02} FROM stock WHERE (s_w_id, s_i_id) IN ({}) FOR UPDATE",
            tuples(lines.len(), 2)
        );
        let rows = session.query(&sql, &pairs)?;
        let stock = by_number(&rows, |row| Ok((int(&rows, row, 1)?, text(&rows, row, 3)?)))?;
        let mut inserted: Vec<Value> = Vec::with_capacity(lines.len() * 9);
        for (number, line) in (1_i64..).zip(&lines) {
            let missing = || surprise("an item that was asked for is missing");
            let (quantity, info) = stock.get(&line.item).ok_or_else(missing)?;
            let price = prices.get(&line.item).ok_or_else(missing)?;
            let refill = if *quantity >= line.quantity + 10 { 0 } else { 91 };
            session.query(
                "UPDATE stock SET s_quantity = $1, s_ytd = s_ytd + $2, s_order_cnt = s_order_cnt + 1, \
                 s_remote_cnt = s_remote_cnt + $3 WHERE s_w_id = $4 AND s_i_id = $5",
                &[
                    (quantity - line.quantity + refill).into(),
                    line.quantity.into(),
                    i64::from(line.supply != w).into(),
                    line.supply.into(),
                    line.item.into(),
                ],
            )?;
            inserted.extend(
                [order, d, w, number, line.item, line.supply, line.quantity].map(Value::Int),
            );
            inserted.extend([Value::Cents(price * line.quantity), Value::Text(info.clone())]);
        }
        let sql = format!(
            "INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, \
             ol_amount, ol_dist_info) VALUES {}",
            tuples(lines.len(), 9)
        );
        session.query(&sql, &inserted)?;
        session.command("COMMIT")?;
        Ok(End::Committed)
    }

    /// A customer of this place, three of five times by name.
    fn customer(&mut self, warehouse: i64, district: i64) -> Customer {
        let (mut id, mut last) = (0, String::new());
        if self.random.percent(60) {
            last = self.random.last_name(self.sizes.customers);
        } else {
            id = self.random.customer(self.sizes.customers);
        }
        Customer { warehouse, district, id, last }
    }

    /// The customer's number; of those with one name the middle one by first name.
    fn find(&mut self, customer: &Customer) -> Result<i64, Failure> {
        if customer.id > 0 {
            return Ok(customer.id);
        }
        let rows = self.session.query(
            "SELECT c_id FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_last = $3 ORDER BY c_first",
            &[customer.warehouse.into(), customer.district.into(), customer.last.clone().into()],
        )?;
        int(&rows, rows.len().saturating_sub(1) / 2, 0)
    }

    fn payment(&mut self) -> Result<(), Failure> {
        let (w, d) = (self.warehouse, self.district());
        let customer = if self.sizes.warehouses > 1 && self.random.percent(15) {
            let (w, d) = (self.other_warehouse(), self.district());
            self.customer(w, d)
        } else {
            self.customer(w, d)
        };
        let amount = Value::Cents(self.random.uniform(100, 500_000));
        let (cw, cd) = (customer.warehouse, customer.district);
        if self.session.calls_procedures() {
            let values = [
                w.into(),
                d.into(),
                cw.into(),
                cd.into(),
                customer.id.into(),
                customer.last.into(),
                amount,
            ];
            let call = "CALL tpcc_payment($1, $2, $3, $4, $5, $6, $7)";
            return self.session.query(call, &values).map(drop);
        }
        self.session.command("BEGIN")?;
        let rows = self.session.query(
            "UPDATE warehouse SET w_ytd = w_ytd + $1 WHERE w_id = $2 \
             RETURNING w_name, w_street_1, w_street_2, w_city, w_state, w_zip",
            &[amount.clone(), w.into()],
        )?;
        let warehouse = text(&rows, 0, 0)?;
        let rows = self.session.query(
            "UPDATE district SET d_ytd = d_ytd + $1 WHERE d_w_id = $2 AND d_id = $3 \
             RETURNING d_name, d_street_1, d_street_2, d_city, d_state, d_zip",
            &[amount.clone(), w.into(), d.into()],
        )?;
        let data = format!("{warehouse}    {}", text(&rows, 0, 0)?);
        let c = self.find(&customer)?;
        let place = [Value::Int(cw), Value::Int(cd), Value::Int(c)];
        let rows = self.session.query(
            "SELECT c_credit, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, \
             c_credit_lim, c_discount, c_balance, c_since FROM customer \
             WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3 FOR UPDATE",
            &place,
        )?;
        let [pw, pd, pc] = place;
        if text(&rows, 0, 0)? == "BC" {
            let note = format!("{c} {cd} {cw} {d} {w}|");
            self.session.query(
                "UPDATE customer SET c_balance = c_balance - $1, c_ytd_payment = c_ytd_payment + $1, \
                 c_payment_cnt = c_payment_cnt + 1, c_data = left($2 || c_data, 500) \
                 WHERE c_w_id = $3 AND c_d_id = $4 AND c_id = $5",
                &[amount.clone(), note.into(), pw, pd, pc],
            )?;
        } else {
            self.session.query(
                "UPDATE customer SET c_balance = c_balance - $1, c_ytd_payment = c_ytd_payment + $1, \
                 c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = $2 AND c_d_id = $3 AND c_id = $4",
                &[amount.clone(), pw, pd, pc],
            )?;
        }
        self.session.query(
            "INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) \
             VALUES ($1, $2, $3, $4, $5, localtimestamp, $6, $7)",
            &[c.into(), cd.into(), cw.into(), d.into(), w.into(), amount, data.into()],
        )?;
        self.session.command("COMMIT")
    }

    fn order_status(&mut self) -> Result<(), Failure> {
        let (w, d) = (self.warehouse, self.district());
        let customer = self.customer(w, d);
        if self.session.calls_procedures() {
            let values = [w.into(), d.into(), customer.id.into(), customer.last.into()];
            return self.session.query("CALL tpcc_order_status($1, $2, $3, $4)", &values).map(drop);
        }
        self.session.command("BEGIN")?;
        let c = self.find(&customer)?;
        self.session.query(
            "SELECT c_first, c_middle, c_last, c_balance FROM customer \
             WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3",
            &[w.into(), d.into(), c.into()],
        )?;
        let rows = self.session.query(
            "SELECT o_id, o_carrier_id, o_entry_d FROM orders WHERE o_w_id = $1 AND o_d_id = $2 AND o_c_id = $3 \
             ORDER BY o_id DESC LIMIT 1",
            &[w.into(), d.into(), c.into()],
        )?;
        let order = int(&rows, 0, 0)?;
        self.session.query(
            "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line \
             WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3",
            &[w.into(), d.into(), order.into()],
        )?;
        self.session.command("COMMIT")
    }

    fn delivery(&mut self) -> Result<(), Failure> {
        let (w, carrier) = (self.warehouse, self.random.uniform(1, 10));
        if self.session.calls_procedures() {
            let values = [w.into(), carrier.into()];
            return self.session.query("CALL tpcc_delivery($1, $2)", &values).map(drop);
        }
        self.session.command("BEGIN")?;
        // The oldest new order of each district, as warehouse, district and order.
        let mut orders: Vec<Value> = Vec::new();
        for d in 1..=self.sizes.districts {
            let rows = self.session.query(
                "SELECT no_o_id FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 \
                 ORDER BY no_o_id LIMIT 1 FOR UPDATE",
                &[w.into(), d.into()],
            )?;
            if !rows.is_empty() {
                orders.extend([w, d, int(&rows, 0, 0)?].map(Value::Int));
            }
        }
        if orders.is_empty() {
            return self.session.command("COMMIT");
        }
        let rows = tuples(orders.len() / 3, 3);
        let session = &mut self.session;
        session.query(
            &format!("DELETE FROM new_order WHERE (no_w_id, no_d_id, no_o_id) IN ({rows})"),
            &orders,
        )?;
        let next = orders.len() + 1;
        let mut and_carrier = orders.clone();
        and_carrier.push(carrier.into());
        session.query(
            &format!(
                "UPDATE orders SET o_carrier_id = ${next} WHERE (o_w_id, o_d_id, o_id) IN ({rows})"
            ),
            &and_carrier,
        )?;
        let customers = session.query(
            &format!("SELECT o_d_id, o_c_id FROM orders WHERE (o_w_id, o_d_id, o_id) IN ({rows})"),
            &orders,
        )?;
        session.query(
            &format!(
                "UPDATE order_line SET ol_delivery_d = localtimestamp WHERE (ol_w_id, ol_d_id, ol_o_id) IN ({rows})"
            ),
            &orders,
        )?;
        let sums = session.query(
            &format!(
                "SELECT ol_d_id, sum(ol_amount) FROM order_line WHERE (ol_w_id, ol_d_id, ol_o_id) IN ({rows}) \
                 GROUP BY ol_d_id"
            ),
            &orders,
        )?;
        let amounts = by_number(&sums, |row| cents(&sums, row, 1))?;
        for row in 0..customers.len() {
            let (d, c) = (int(&customers, row, 0)?, int(&customers, row, 1)?);
            let amount = amounts.get(&d).ok_or_else(|| surprise("an order has no lines"))?;
            session.query(
                "UPDATE customer SET c_balance = c_balance + $1, c_delivery_cnt = c_delivery_cnt + 1 \
                 WHERE c_w_id = $2 AND c_d_id = $3 AND c_id = $4",
                &[Value::Cents(*amount), w.into(), d.into(), c.into()],
            )?;
        }
        session.command("COMMIT")
    }

    fn stock_level(&mut self) -> Result<(), Failure> {
        let (w, d, threshold) = (self.warehouse, self.district(), self.random.uniform(10, 20));
        if self.session.calls_procedures() {
            let values = [w.into(), d.into(), threshold.into()];
            return self.session.query("CALL tpcc_stock_level($1, $2, $3)", &values).map(drop);
        }
        self.session.command("BEGIN")?;
        let rows = self.session.query(
            "SELECT d_next_o_id FROM district WHERE d_w_id = $1 AND d_id = $2",
            &[w.into(), d.into()],
        )?;
        let next = int(&rows, 0, 0)?;
        self.session.query(
            "SELECT count(DISTINCT s_i_id) FROM order_line, stock WHERE ol_w_id = $1 AND ol_d_id = $2 \
             AND ol_o_id < $3 AND ol_o_id >= $3 - 20 AND s_w_id = $1 AND s_i_id = ol_i_id AND s_quantity < $4",
            &[w.into(), d.into(), next.into(), threshold.into()],
        )?;
        self.session.command("COMMIT")
    }
}

/// `($1, $2)` from this number on.
fn places(first: usize, count: usize) -> String {
    let mut out = String::from("(");
    for at in first..first + count {
        let comma = if at > first { ", " } else { "" };
        let _ = write!(out, "{comma}${at}");
    }
    out.push(')');
    out
}

/// `($1, $2), ($3, $4)`: so many tuples of so many.
fn tuples(count: usize, width: usize) -> String {
    let all: Vec<String> = (0..count).map(|at| places(at * width + 1, width)).collect();
    all.join(", ")
}

/// `{1,2}`.
fn array(values: impl Iterator<Item = i64>) -> String {
    let values: Vec<String> = values.map(|value| value.to_string()).collect();
    format!("{{{}}}", values.join(","))
}

/// An answer that does not fit what is in the tables.
fn surprise(what: &str) -> Failure {
    Failure { code: "XX000".to_owned(), message: what.to_owned() }
}

fn text(rows: &Rows, row: usize, column: usize) -> Result<String, Failure> {
    let value = rows.get(row).and_then(|r| r.get(column)).cloned().flatten();
    value.ok_or_else(|| surprise("a row or value is missing"))
}

fn int(rows: &Rows, row: usize, column: usize) -> Result<i64, Failure> {
    text(rows, row, column)?.parse().map_err(|_| surprise("a value is no whole number"))
}

/// A numeric value of at most two places as cents.
fn cents(rows: &Rows, row: usize, column: usize) -> Result<i64, Failure> {
    let value = text(rows, row, column)?;
    let (whole, part) = value.split_once('.').unwrap_or((&value, ""));
    let digits = format!("{whole}{part:0<2}");
    let fits = part.len() <= 2;
    let parsed = digits.parse().ok().filter(|_| fits);
    parsed.ok_or_else(|| surprise("a value is no amount of money"))
}

/// What `value` reads of each row, by the row's first number.
fn by_number<T>(
    rows: &Rows,
    value: impl Fn(usize) -> Result<T, Failure>,
) -> Result<HashMap<i64, T>, Failure> {
    (0..rows.len()).map(|row| Ok((int(rows, row, 0)?, value(row)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_make_a_hundred() {
        assert_eq!(Kind::ALL.iter().map(|(_, share, _, _)| share).sum::<i64>(), 100);
    }

    #[test]
    fn lists_and_amounts() {
        assert_eq!(tuples(2, 2), "($1, $2), ($3, $4)");
        assert_eq!(array([1, 2].into_iter()), "{1,2}");
        let rows =
            vec![vec![Some("12.5".to_owned()), Some("7".to_owned()), Some("1.005".to_owned())]];
        assert_eq!((cents(&rows, 0, 0).unwrap(), cents(&rows, 0, 1).unwrap()), (1250, 700));
        assert!(cents(&rows, 0, 2).is_err() && text(&rows, 1, 0).is_err());
    }
}
