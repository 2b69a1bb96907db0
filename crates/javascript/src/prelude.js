(function (request) {
  'use strict';
  const levels = {
    DEBUG5: 10, DEBUG4: 11, DEBUG3: 12, DEBUG2: 13, DEBUG1: 14,
    LOG: 15, INFO: 17, NOTICE: 18, WARNING: 19, ERROR: 21,
  };
  for (const name of Object.keys(levels)) globalThis[name] = levels[name];

  const list = (args) =>
    args.length === 1 && Array.isArray(args[0]) ? args[0] : args.filter((a) => a !== undefined);

  class Cursor {
    #name;
    constructor(name) { this.#name = name; }
    fetch(count) {
      const rows = request(3, this.#name, count === undefined ? 1 : count);
      if (count === undefined) return rows.length ? rows[0] : null;
      return rows.length ? rows : null;
    }
    move(count) { return request(4, this.#name, count); }
    close() { request(5, this.#name); }
    toString() { return this.#name; }
  }

  class PreparedPlan {
    #sql;
    #types;
    constructor(sql, types) {
      this.#sql = sql;
      this.#types = types;
      request(13, sql, types);
    }
    execute(...args) { return request(1, this.#sql, list(args), this.#types); }
    cursor(...args) { return new Cursor(request(2, this.#sql, list(args), this.#types)); }
    free() {}
  }

  globalThis.plv8 = Object.freeze({
    version: '3.2 (threadgres)',
    elog: (level, ...parts) => { request(0, level, parts.map(String).join(' ')); },
    execute: (sql, ...args) => request(1, String(sql), list(args), undefined),
    prepare: (sql, types) => new PreparedPlan(String(sql), types === undefined ? [] : types),
    subtransaction: (body) => request(6, body),
    find_function: (name) => request(7, String(name)),
    return_next: (row) => { request(8, row); },
    quote_literal: (text) => request(9, String(text)),
    quote_ident: (text) => request(10, String(text)),
    quote_nullable: (text) =>
      text === null || text === undefined ? 'NULL' : request(9, String(text)),
    commit: () => { request(11); },
    rollback: () => { request(12); },
  });
})
