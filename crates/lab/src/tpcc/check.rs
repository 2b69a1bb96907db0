//! The twelve consistency conditions (clause 3.3.2), each as a query that counts what does not hold.

use super::Sizes;
use crate::driver::Connection;
use crate::{Error, Result};

/// Name and query of each. The eleventh, which the standard states for the initial population, counts the orders that
/// were delivered since by their customers' counters; `DELIVERED` stands for those of the load.
const CONDITIONS: [(&str, &str); 12] = [
    (
        "1: a warehouse's sum is that of its districts",
        "SELECT count(*) FROM warehouse LEFT JOIN
           (SELECT d_w_id, sum(d_ytd) AS total FROM district GROUP BY d_w_id) d ON d_w_id = w_id
         WHERE w_ytd IS DISTINCT FROM total",
    ),
    (
        "2: a district's next order follows its last one and its last new one",
        "SELECT count(*) FROM district
           LEFT JOIN (SELECT o_w_id, o_d_id, max(o_id) AS o_last FROM orders GROUP BY o_w_id, o_d_id) o
             ON o_w_id = d_w_id AND o_d_id = d_id
           LEFT JOIN (SELECT no_w_id, no_d_id, max(no_o_id) AS no_last FROM new_order GROUP BY no_w_id, no_d_id) n
             ON no_w_id = d_w_id AND no_d_id = d_id
         WHERE d_next_o_id - 1 IS DISTINCT FROM o_last OR d_next_o_id - 1 <> no_last",
    ),
    (
        "3: a district's new orders have no gaps",
        "SELECT count(*) FROM (SELECT max(no_o_id) - min(no_o_id) + 1 - count(*) AS gaps FROM new_order
           GROUP BY no_w_id, no_d_id) n WHERE gaps <> 0",
    ),
    (
        "4: a district's orders count its lines",
        "SELECT count(*) FROM (SELECT o_w_id, o_d_id, sum(o_ol_cnt) AS said FROM orders GROUP BY o_w_id, o_d_id) o
           FULL JOIN (SELECT ol_w_id, ol_d_id, count(*) AS found FROM order_line GROUP BY ol_w_id, ol_d_id) l
             ON o_w_id = ol_w_id AND o_d_id = ol_d_id
         WHERE said IS DISTINCT FROM found",
    ),
    (
        "5: orders without a carrier are the new ones",
        "SELECT count(*) FROM orders FULL JOIN new_order
             ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id
         WHERE o_id IS NULL OR (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL)",
    ),
    (
        "6: an order counts its lines",
        "SELECT count(*) FROM orders FULL JOIN (SELECT ol_w_id, ol_d_id, ol_o_id, count(*) AS found FROM order_line
             GROUP BY ol_w_id, ol_d_id, ol_o_id) l
             ON o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id
         WHERE o_ol_cnt IS DISTINCT FROM found",
    ),
    (
        "7: lines are delivered when their order has a carrier",
        "SELECT count(*) FROM order_line LEFT JOIN orders ON o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id
         WHERE o_id IS NULL OR (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL)",
    ),
    (
        "8: a warehouse's sum is that of its history",
        "SELECT count(*) FROM warehouse LEFT JOIN
           (SELECT h_w_id, sum(h_amount) AS total FROM history GROUP BY h_w_id) h ON h_w_id = w_id
         WHERE w_ytd IS DISTINCT FROM total",
    ),
    (
        "9: a district's sum is that of its history",
        "SELECT count(*) FROM district LEFT JOIN
           (SELECT h_w_id, h_d_id, sum(h_amount) AS total FROM history GROUP BY h_w_id, h_d_id) h
             ON h_w_id = d_w_id AND h_d_id = d_id
         WHERE d_ytd IS DISTINCT FROM total",
    ),
    (
        "10: a customer's balance is what was delivered less what was paid",
        "SELECT count(*) FROM customer
           LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, sum(ol_amount) AS delivered FROM orders JOIN order_line
               ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
             WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) o
             ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id
           LEFT JOIN (SELECT h_c_w_id, h_c_d_id, h_c_id, sum(h_amount) AS paid FROM history
             GROUP BY h_c_w_id, h_c_d_id, h_c_id) h
             ON h_c_w_id = c_w_id AND h_c_d_id = c_d_id AND h_c_id = c_id
         WHERE c_balance <> coalesce(delivered, 0) - coalesce(paid, 0)",
    ),
    (
        "11: a district's orders that are not new were loaded so or delivered",
        "SELECT count(*) FROM (SELECT o_w_id, o_d_id, count(*) AS ordered FROM orders GROUP BY o_w_id, o_d_id) o
           JOIN (SELECT c_w_id, c_d_id, sum(c_delivery_cnt) AS since FROM customer GROUP BY c_w_id, c_d_id) c
             ON c_w_id = o_w_id AND c_d_id = o_d_id
           LEFT JOIN (SELECT no_w_id, no_d_id, count(*) AS waiting FROM new_order GROUP BY no_w_id, no_d_id) n
             ON no_w_id = o_w_id AND no_d_id = o_d_id
         WHERE ordered - coalesce(waiting, 0) <> since + DELIVERED",
    ),
    (
        "12: a customer's balance and payments are what was delivered",
        "SELECT count(*) FROM customer
           LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, sum(ol_amount) AS delivered FROM orders JOIN order_line
               ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
             WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) o
             ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id
         WHERE c_balance + c_ytd_payment <> coalesce(delivered, 0)",
    ),
];

/// Checks all conditions.
///
/// # Errors
/// One does not hold, or its query fails.
pub fn check(connection: &mut Connection, sizes: &Sizes, server: &str) -> Result<()> {
    for (name, query) in CONDITIONS {
        let query = query.replace("DELIVERED", &sizes.delivered().to_string());
        let count = connection.value(&query)?;
        if count.as_deref() != Some("0") {
            let count = count.unwrap_or_default();
            return Err(Error::new(format!("{server}: condition {name}: {count} times not so")));
        }
    }
    Ok(())
}
