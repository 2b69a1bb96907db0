CREATE FUNCTION log_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.balance IS DISTINCT FROM OLD.balance THEN
        INSERT INTO account_log VALUES (NEW.id, OLD.balance, NEW.balance);
    END IF;
    NEW.changed := now();
    RETURN NEW;
END $$;
CREATE TRIGGER log_change BEFORE UPDATE ON account FOR EACH ROW EXECUTE FUNCTION log_change();
CREATE PROCEDURE transfer(source text, target text, amount numeric) LANGUAGE plpgsql AS $$
BEGIN
    UPDATE account SET balance = balance - amount WHERE name = source;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no account %', source USING ERRCODE = 'P0002';
    END IF;
    UPDATE account SET balance = balance + amount WHERE name = target;
END $$;
