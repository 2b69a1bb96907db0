//! TPC-C's nine tables, their keys and indexes, and its transactions as procedures.

/// What is dropped before a load, and what a load makes.
pub const TABLES: &str = "
DROP TABLE IF EXISTS history, new_order, order_line, orders, customer, district, stock, item, warehouse CASCADE;
CREATE TABLE warehouse (w_id int NOT NULL, w_name varchar(10), w_street_1 varchar(20), w_street_2 varchar(20),
  w_city varchar(20), w_state char(2), w_zip char(9), w_tax numeric(4,4), w_ytd numeric(12,2));
CREATE TABLE district (d_id int NOT NULL, d_w_id int NOT NULL, d_name varchar(10), d_street_1 varchar(20),
  d_street_2 varchar(20), d_city varchar(20), d_state char(2), d_zip char(9), d_tax numeric(4,4),
  d_ytd numeric(12,2), d_next_o_id int);
CREATE TABLE customer (c_id int NOT NULL, c_d_id int NOT NULL, c_w_id int NOT NULL, c_first varchar(16),
  c_middle char(2), c_last varchar(16), c_street_1 varchar(20), c_street_2 varchar(20), c_city varchar(20),
  c_state char(2), c_zip char(9), c_phone char(16), c_since timestamp, c_credit char(2),
  c_credit_lim numeric(12,2), c_discount numeric(4,4), c_balance numeric(12,2), c_ytd_payment numeric(12,2),
  c_payment_cnt int, c_delivery_cnt int, c_data varchar(500));
CREATE TABLE history (h_c_id int, h_c_d_id int, h_c_w_id int, h_d_id int, h_w_id int, h_date timestamp,
  h_amount numeric(6,2), h_data varchar(24));
CREATE TABLE new_order (no_o_id int NOT NULL, no_d_id int NOT NULL, no_w_id int NOT NULL);
CREATE TABLE orders (o_id int NOT NULL, o_d_id int NOT NULL, o_w_id int NOT NULL, o_c_id int,
  o_entry_d timestamp, o_carrier_id int, o_ol_cnt int, o_all_local int);
CREATE TABLE order_line (ol_o_id int NOT NULL, ol_d_id int NOT NULL, ol_w_id int NOT NULL, ol_number int NOT NULL,
  ol_i_id int NOT NULL, ol_supply_w_id int, ol_delivery_d timestamp, ol_quantity int, ol_amount numeric(6,2),
  ol_dist_info char(24));
CREATE TABLE item (i_id int NOT NULL, i_im_id int, i_name varchar(24), i_price numeric(5,2), i_data varchar(50));
CREATE TABLE stock (s_i_id int NOT NULL, s_w_id int NOT NULL, s_quantity int, s_dist_01 char(24),
  s_dist_02 char(24), s_dist_03 char(24), s_dist_04 char(24), s_dist_05 char(24), s_dist_06 char(24),
  s_dist_07 char(24), s_dist_08 char(24), s_dist_09 char(24), s_dist_10 char(24), s_ytd int, s_order_cnt int,
  s_remote_cnt int, s_data varchar(50))";

/// What follows the data.
pub const KEYS: &str = "
ALTER TABLE warehouse ADD PRIMARY KEY (w_id);
ALTER TABLE district ADD PRIMARY KEY (d_w_id, d_id);
ALTER TABLE customer ADD PRIMARY KEY (c_w_id, c_d_id, c_id);
ALTER TABLE new_order ADD PRIMARY KEY (no_w_id, no_d_id, no_o_id);
ALTER TABLE orders ADD PRIMARY KEY (o_w_id, o_d_id, o_id);
ALTER TABLE order_line ADD PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number);
ALTER TABLE item ADD PRIMARY KEY (i_id);
ALTER TABLE stock ADD PRIMARY KEY (s_w_id, s_i_id);
CREATE INDEX customer_name ON customer (c_w_id, c_d_id, c_last, c_first);
CREATE INDEX orders_customer ON orders (o_w_id, o_d_id, o_c_id, o_id)";

/// The standard's foreign keys, which most drivers leave out.
pub const FOREIGN_KEYS: &str = "
ALTER TABLE district ADD FOREIGN KEY (d_w_id) REFERENCES warehouse;
ALTER TABLE customer ADD FOREIGN KEY (c_w_id, c_d_id) REFERENCES district;
ALTER TABLE history ADD FOREIGN KEY (h_c_w_id, h_c_d_id, h_c_id) REFERENCES customer;
ALTER TABLE history ADD FOREIGN KEY (h_w_id, h_d_id) REFERENCES district;
ALTER TABLE orders ADD FOREIGN KEY (o_w_id, o_d_id, o_c_id) REFERENCES customer;
ALTER TABLE new_order ADD FOREIGN KEY (no_w_id, no_d_id, no_o_id) REFERENCES orders;
ALTER TABLE order_line ADD FOREIGN KEY (ol_w_id, ol_d_id, ol_o_id) REFERENCES orders;
ALTER TABLE order_line ADD FOREIGN KEY (ol_supply_w_id, ol_i_id) REFERENCES stock;
ALTER TABLE stock ADD FOREIGN KEY (s_w_id) REFERENCES warehouse;
ALTER TABLE stock ADD FOREIGN KEY (s_i_id) REFERENCES item";

/// What a customer is found by: a number, or a last name of which the middle one by first name counts.
const CUSTOMER: &str = "
  IF p_last <> '' THEN
    SELECT array_agg(c_id ORDER BY c_first) INTO v_ids FROM customer
      WHERE c_w_id = p_c_w AND c_d_id = p_c_d AND c_last = p_last;
    p_c := v_ids[(cardinality(v_ids) + 1) / 2];
  END IF;";

/// The transactions as procedures, one statement each.
pub fn procedures() -> Vec<String> {
    vec![
        "CREATE OR REPLACE PROCEDURE tpcc_new_order(p_w int, p_d int, p_c int, p_items int[], p_supplies int[],
           p_quantities int[]) LANGUAGE plpgsql AS $$
DECLARE
  v_order int; v_price numeric; v_info text; v_discount numeric; v_tax numeric; v_local int := 1;
BEGIN
  SELECT c_discount, w_tax INTO v_discount, v_tax FROM customer JOIN warehouse ON w_id = c_w_id
    WHERE c_w_id = p_w AND c_d_id = p_d AND c_id = p_c;
  UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = p_w AND d_id = p_d
    RETURNING d_next_o_id - 1 INTO v_order;
  FOR k IN 1 .. cardinality(p_items) LOOP
    IF p_supplies[k] <> p_w THEN v_local := 0; END IF;
  END LOOP;
  INSERT INTO orders VALUES (v_order, p_d, p_w, p_c, localtimestamp, NULL, cardinality(p_items), v_local);
  INSERT INTO new_order VALUES (v_order, p_d, p_w);
  FOR k IN 1 .. cardinality(p_items) LOOP
    SELECT i_price INTO v_price FROM item WHERE i_id = p_items[k];
    IF NOT FOUND THEN
      RAISE EXCEPTION 'item % is not there', p_items[k] USING ERRCODE = 'no_data_found';
    END IF;
    UPDATE stock SET s_quantity = s_quantity - p_quantities[k]
        + CASE WHEN s_quantity >= p_quantities[k] + 10 THEN 0 ELSE 91 END,
      s_ytd = s_ytd + p_quantities[k], s_order_cnt = s_order_cnt + 1,
      s_remote_cnt = s_remote_cnt + CASE WHEN p_supplies[k] = p_w THEN 0 ELSE 1 END
      WHERE s_w_id = p_supplies[k] AND s_i_id = p_items[k]
      RETURNING CASE p_d WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03 WHEN 4 THEN s_dist_04
        WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08
        WHEN 9 THEN s_dist_09 ELSE s_dist_10 END INTO v_info;
    INSERT INTO order_line VALUES (v_order, p_d, p_w, k, p_items[k], p_supplies[k], NULL, p_quantities[k],
      p_quantities[k] * v_price, v_info);
  END LOOP;
END $$"
            .to_owned(),
        format!(
            "CREATE OR REPLACE PROCEDURE tpcc_payment(p_w int, p_d int, p_c_w int, p_c_d int, p_c int, p_last text,
           p_amount numeric) LANGUAGE plpgsql AS $$
DECLARE
  v_ids int[]; v_warehouse text; v_district text;
BEGIN
  UPDATE warehouse SET w_ytd = w_ytd + p_amount WHERE w_id = p_w RETURNING w_name INTO v_warehouse;
  UPDATE district SET d_ytd = d_ytd + p_amount WHERE d_w_id = p_w AND d_id = p_d
    RETURNING d_name INTO v_district;{CUSTOMER}
  UPDATE customer SET c_balance = c_balance - p_amount, c_ytd_payment = c_ytd_payment + p_amount,
    c_payment_cnt = c_payment_cnt + 1, c_data = CASE c_credit WHEN 'BC' THEN
      left(format('%s %s %s %s %s %s|', c_id, c_d_id, c_w_id, p_d, p_w, p_amount) || c_data, 500)
      ELSE c_data END
    WHERE c_w_id = p_c_w AND c_d_id = p_c_d AND c_id = p_c;
  INSERT INTO history VALUES (p_c, p_c_d, p_c_w, p_d, p_w, localtimestamp, p_amount,
    v_warehouse || '    ' || v_district);
END $$"
        ),
        format!(
            "CREATE OR REPLACE PROCEDURE tpcc_order_status(p_c_w int, p_c_d int, p_c int, p_last text)
           LANGUAGE plpgsql AS $$
DECLARE
  v_ids int[]; v_order int; v_customer record; v_line record;
BEGIN{CUSTOMER}
  SELECT c_first, c_middle, c_last, c_balance INTO v_customer FROM customer
    WHERE c_w_id = p_c_w AND c_d_id = p_c_d AND c_id = p_c;
  SELECT o_id INTO v_order FROM orders WHERE o_w_id = p_c_w AND o_d_id = p_c_d AND o_c_id = p_c
    ORDER BY o_id DESC LIMIT 1;
  FOR v_line IN SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line
    WHERE ol_w_id = p_c_w AND ol_d_id = p_c_d AND ol_o_id = v_order LOOP
  END LOOP;
END $$"
        ),
        "CREATE OR REPLACE PROCEDURE tpcc_delivery(p_w int, p_carrier int) LANGUAGE plpgsql AS $$
DECLARE
  v_order int; v_customer int; v_amount numeric;
BEGIN
  FOR v_district IN 1 .. 10 LOOP
    SELECT no_o_id INTO v_order FROM new_order WHERE no_w_id = p_w AND no_d_id = v_district
      ORDER BY no_o_id LIMIT 1 FOR UPDATE;
    CONTINUE WHEN NOT FOUND;
    DELETE FROM new_order WHERE no_w_id = p_w AND no_d_id = v_district AND no_o_id = v_order;
    UPDATE orders SET o_carrier_id = p_carrier WHERE o_w_id = p_w AND o_d_id = v_district AND o_id = v_order
      RETURNING o_c_id INTO v_customer;
    UPDATE order_line SET ol_delivery_d = localtimestamp
      WHERE ol_w_id = p_w AND ol_d_id = v_district AND ol_o_id = v_order;
    SELECT sum(ol_amount) INTO v_amount FROM order_line
      WHERE ol_w_id = p_w AND ol_d_id = v_district AND ol_o_id = v_order;
    UPDATE customer SET c_balance = c_balance + v_amount, c_delivery_cnt = c_delivery_cnt + 1
      WHERE c_w_id = p_w AND c_d_id = v_district AND c_id = v_customer;
  END LOOP;
END $$"
            .to_owned(),
        "CREATE OR REPLACE PROCEDURE tpcc_stock_level(p_w int, p_d int, p_threshold int) LANGUAGE plpgsql AS $$
DECLARE
  v_next int; v_low bigint;
BEGIN
  SELECT d_next_o_id INTO v_next FROM district WHERE d_w_id = p_w AND d_id = p_d;
  SELECT count(DISTINCT s_i_id) INTO v_low FROM order_line JOIN stock ON s_i_id = ol_i_id AND s_w_id = ol_w_id
    WHERE ol_w_id = p_w AND ol_d_id = p_d AND ol_o_id >= v_next - 20 AND ol_o_id < v_next
      AND s_quantity < p_threshold;
END $$"
            .to_owned(),
    ]
}
