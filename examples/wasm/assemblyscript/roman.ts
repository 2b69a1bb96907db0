// roman(int) -> text, and audit() -> trigger, which notes who changed a row.
// asc roman.ts --outFile roman.wasm --runtime stub --optimize

@external("threadgres", "set")
declare function set(name: usize, nameLength: i32, value: usize, length: i32): i32;
@external("threadgres", "trigger")
declare function fact(what: i32, into: usize, room: i32): i32;

const room = memory.data(65536);

export function alloc(size: i32): usize {
  return size <= 65536 ? room : heap.alloc(size);
}

function give(text: string): i64 {
  const bytes = String.UTF8.encode(text);
  return (<i64>changetype<usize>(bytes)) << 32 | <i64>bytes.byteLength;
}

export function roman(n: i32): i64 {
  if (n < 1 || n > 3999) throw new Error("out of the numbers that the Romans wrote");
  const signs = ["M", "CM", "D", "CD", "C", "XC", "L", "XL", "X", "IX", "V", "IV", "I"];
  const worth = [1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1];
  let text = "";
  for (let i = 0; i < signs.length; i++) {
    while (n >= worth[i]) {
      text += signs[i];
      n -= worth[i];
    }
  }
  return give(text);
}

const operation = memory.data(16);

export function audit(): i32 {
  const name = String.UTF8.encode("changed_by");
  const length = fact(3, operation, 16);
  set(changetype<usize>(name), name.byteLength, operation, length);
  return 0;
}
