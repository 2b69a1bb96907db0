// A small ledger over pgx: it makes its tables, moves money, asks, fails and recovers.
// Usage: go run . DSN
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

var ctx = context.Background()

func check(condition bool, format string, values ...any) {
	if !condition {
		panic(fmt.Sprintf(format, values...))
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func code(err error) string {
	var failure *pgconn.PgError
	if errors.As(err, &failure) {
		return failure.Code
	}
	return fmt.Sprint(err)
}

func makesItsTables(pool *pgxpool.Pool) {
	_, err := pool.Exec(ctx, `DROP TABLE IF EXISTS entry, account;
		CREATE TABLE account (id bigint PRIMARY KEY, owner text NOT NULL, cents bigint NOT NULL CHECK (cents >= 0));
		CREATE TABLE entry (account bigint REFERENCES account (id), cents bigint, at timestamptz, note bytea)`)
	must(err)
}

func valuesComeBack(pool *pgxpool.Pool) {
	at := time.Date(2024, 2, 29, 12, 30, 15, 123456000, time.UTC)
	var (
		i16  int16
		i64  int64
		f    float64
		text string
		yes  bool
		raw  []byte
		when time.Time
		list []int32
		none *string
		id   [16]byte
	)
	row := pool.QueryRow(ctx, `SELECT $1::int2, $2::int8, $3::float8, $4::text, $5::bool, $6::bytea,
		$7::timestamptz, $8::int4[], $9::text, $10::uuid`,
		int16(-7), int64(1)<<60, 0.1, "ä 😀", true, []byte{0, 255}, at, []int32{1, 2, 3}, nil,
		[16]byte{1, 2, 3})
	must(row.Scan(&i16, &i64, &f, &text, &yes, &raw, &when, &list, &none, &id))
	check(i16 == -7 && i64 == 1<<60 && f == 0.1 && text == "ä 😀" && yes, "%v %v %v %v", i16, i64, f, text)
	check(len(raw) == 2 && raw[1] == 255 && when.Equal(at) && len(list) == 3 && none == nil && id[1] == 2,
		"%v %v %v %v", raw, when, list, id)
}

func copiesIn(pool *pgxpool.Pool) {
	rows := make([][]any, 100)
	for i := range rows {
		rows[i] = []any{int64(i + 1), fmt.Sprintf("owner %d", i+1), int64(1000)}
	}
	n, err := pool.CopyFrom(ctx, pgx.Identifier{"account"}, []string{"id", "owner", "cents"}, pgx.CopyFromRows(rows))
	must(err)
	check(n == 100, "%d rows", n)
	_, err = pool.CopyFrom(ctx, pgx.Identifier{"account"}, []string{"id", "owner", "cents"}, pgx.CopyFromRows(rows[:1]))
	check(code(err) == "23505", "%v", err)
}

func batches(pool *pgxpool.Pool) {
	batch := &pgx.Batch{}
	for i := 1; i <= 10; i++ {
		batch.Queue("SELECT owner FROM account WHERE id = $1", i)
	}
	results := pool.SendBatch(ctx, batch)
	for i := 1; i <= 10; i++ {
		var owner string
		must(results.QueryRow().Scan(&owner))
		check(owner == fmt.Sprintf("owner %d", i), owner)
	}
	must(results.Close())
	batch = &pgx.Batch{}
	batch.Queue("INSERT INTO account VALUES (500, 'nobody', 1)")
	batch.Queue("SELECT 1 / $1::int", 0)
	check(code(pool.SendBatch(ctx, batch).Close()) == "22012", "the batch's error")
	var n int
	must(pool.QueryRow(ctx, "SELECT count(*) FROM account WHERE id = 500").Scan(&n))
	check(n == 0, "half a batch was kept")
}

func moneyIsMoved(pool *pgxpool.Pool) {
	move := func(from, to int64) error {
		options := pgx.TxOptions{IsoLevel: pgx.Serializable}
		return pgx.BeginTxFunc(ctx, pool, options, func(tx pgx.Tx) error {
			for _, step := range []struct{ account, cents int64 }{{from, -10}, {to, 10}} {
				if _, err := tx.Exec(ctx, "UPDATE account SET cents = cents + $2 WHERE id = $1", step.account, step.cents); err != nil {
					return err
				}
				if _, err := tx.Exec(ctx, "INSERT INTO entry VALUES ($1, $2, now(), NULL)", step.account, step.cents); err != nil {
					return err
				}
			}
			return nil
		})
	}
	var group sync.WaitGroup
	failures := make(chan error, 8)
	for worker := int64(0); worker < 8; worker++ {
		group.Add(1)
		go func(worker int64) {
			defer group.Done()
			for n := int64(0); n < 20; {
				err := move((worker+n)%5+1, (worker*3+n)%5+6)
				switch code(err) {
				case "<nil>":
					n++
				case "40001", "40P01":
				default:
					failures <- err
					return
				}
			}
		}(worker)
	}
	group.Wait()
	close(failures)
	for err := range failures {
		must(err)
	}
	var cents, entries int64
	must(pool.QueryRow(ctx, "SELECT (SELECT sum(cents) FROM account)::int8, (SELECT count(*) FROM entry)").Scan(&cents, &entries))
	check(cents == 100*1000 && entries == 8*20*2, "%d cents, %d entries", cents, entries)
}

func protocolsAgree(pool *pgxpool.Pool) {
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe,
		pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		rows, err := pool.Query(ctx, "SELECT id, owner FROM account WHERE id <= $1 ORDER BY id", mode, 3)
		must(err)
		type account struct {
			ID    int64
			Owner string
		}
		accounts, err := pgx.CollectRows(rows, pgx.RowToStructByPos[account])
		must(err)
		check(len(accounts) == 3 && accounts[2].Owner == "owner 3", "%v: %v", mode, accounts)
	}
}

func failuresAndRecovery(pool *pgxpool.Pool) {
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		inner := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "UPDATE account SET cents = -1 WHERE id = 1")
			return err
		})
		check(code(inner) == "23514", "%v", inner)
		_, err := tx.Exec(ctx, "UPDATE account SET owner = 'still here' WHERE id = 1")
		return err
	})
	must(err)
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	_, err = pool.Exec(short, "SELECT pg_sleep(600)")
	check(err != nil, "the time limit was ignored")
	var owner string
	must(pool.QueryRow(ctx, "SELECT owner FROM account WHERE id = 1").Scan(&owner))
	check(owner == "still here", owner)
	connection, err := pool.Acquire(ctx)
	must(err)
	_, err = pool.Exec(ctx, "SELECT pg_terminate_backend($1)", int32(connection.Conn().PgConn().PID()))
	must(err)
	for err == nil {
		_, err = connection.Exec(ctx, "SELECT 1")
	}
	connection.Release()
	must(pool.Ping(ctx))
}

func othersAreNotified(pool *pgxpool.Pool) {
	connection, err := pool.Acquire(ctx)
	must(err)
	defer connection.Release()
	_, err = connection.Exec(ctx, "LISTEN ledger")
	must(err)
	_, err = pool.Exec(ctx, "NOTIFY ledger, 'closed'")
	must(err)
	notice, err := connection.Conn().WaitForNotification(ctx)
	must(err)
	check(notice.Channel == "ledger" && notice.Payload == "closed", "%v", notice)
	_, err = connection.Exec(ctx, "UNLISTEN *")
	must(err)
}

func main() {
	dsn := "postgresql://postgres@127.0.0.1:5432/postgres"
	if len(os.Args) > 1 {
		dsn = os.Args[1]
	}
	pool, err := pgxpool.New(ctx, dsn)
	must(err)
	defer pool.Close()
	tests := []struct {
		name string
		run  func(*pgxpool.Pool)
	}{
		{"makesItsTables", makesItsTables}, {"valuesComeBack", valuesComeBack}, {"copiesIn", copiesIn},
		{"batches", batches}, {"moneyIsMoved", moneyIsMoved}, {"protocolsAgree", protocolsAgree},
		{"failuresAndRecovery", failuresAndRecovery}, {"othersAreNotified", othersAreNotified},
	}
	failed := 0
	for _, test := range tests {
		func() {
			defer func() {
				if why := recover(); why != nil {
					failed++
					fmt.Printf("%s: %v\n", test.name, why)
				}
			}()
			test.run(pool)
		}()
	}
	fmt.Printf("pgx: %d passed, %d failed\n", len(tests)-failed, failed)
	if failed > 0 {
		os.Exit(1)
	}
}
