// Replaces built-ins that go over something long and never look for interrupts: those of QuickJS are in C. What is short
// still goes to them. `look` looks for interrupts; so do loops here, as all byte code does.
(function (look) {
  'use strict';
  const { apply, construct, defineProperty } = Reflect;
  const { isArray } = Array;
  const { isView } = ArrayBuffer;
  const { min, max, trunc } = Math;
  const { MAX_SAFE_INTEGER } = Number;
  const { iterator, species, isConcatSpreadable } = Symbol;

  // Elements of something like an array, and of an array, that the built-ins take; characters of a text.
  const LONG_LIKE = 1 << 16;
  const LONG_ARRAY = 1 << 22;
  const LONG_TEXT = 1 << 20;
  // Comparisons of characters between two looks for interrupts.
  const AT_ONCE = 1 << 26;

  const integer = (value) => trunc(Number(value)) || 0;
  const lengthOf = (object) => min(max(integer(object.length), 0), MAX_SAFE_INTEGER);
  const from = (value, length, absent) => {
    if (value === undefined) return absent;
    const at = integer(value);
    return at < 0 ? max(length + at, 0) : min(at, length);
  };
  const put = (object, key, value) => {
    defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
  };
  const isLong = (value) => {
    if (value === null || value === undefined) return false;
    return value.length > (isArray(value) ? LONG_ARRAY : LONG_LIKE);
  };
  const isFunction = (value) => {
    if (typeof value !== 'function') throw new TypeError('not a function');
  };

  // Methods of the holder that `takes` the call when it is long; `native` is the built-in.
  const replace = (holder, name, takes, long) => {
    const native = holder[name];
    const own = {
      [name](...args) {
        return takes(this, args) ? long(native, this, args) : apply(native, this, args);
      },
    }[name];
    defineProperty(own, 'length', { value: native.length, configurable: true });
    defineProperty(holder, name, { value: own, writable: true, configurable: true });
  };

  // An array as the object's constructor makes them.
  const like = (object, length) => {
    if (!isArray(object)) return [];
    let made = object.constructor;
    if (typeof made === 'object' || typeof made === 'function') made = made === null ? undefined : made[species];
    return made === undefined || made === null || made === Array ? [] : construct(made, [length]);
  };

  const move = (object, source, target) => {
    if (source in object) object[target] = object[source];
    else delete object[target];
  };

  const array = (name, long, takes) => replace(Array.prototype, name, takes || isLong, (_, self, args) => {
    const object = Object(self);
    return long(object, lengthOf(object), args, args.length);
  });

  array('fill', (object, length, [value, start, end]) => {
    const to = from(end, length, length);
    for (let at = from(start, length, 0); at < to; at++) object[at] = value;
    return object;
  });

  array('reverse', (object, length) => {
    for (let low = 0, high = length - 1; low < high; low++, high--) {
      const hasLow = low in object;
      const hasHigh = high in object;
      const a = object[low];
      const b = object[high];
      if (hasHigh) object[low] = b;
      else if (hasLow) delete object[low];
      if (hasLow) object[high] = a;
      else if (hasHigh) delete object[high];
    }
    return object;
  });

  array('copyWithin', (object, length, [target, start, end]) => {
    const to = from(target, length, 0);
    const first = from(start, length, 0);
    const count = min(from(end, length, length) - first, length - to);
    if (first < to && to < first + count) {
      for (let n = count - 1; n >= 0; n--) move(object, first + n, to + n);
    } else {
      for (let n = 0; n < count; n++) move(object, first + n, to + n);
    }
    return object;
  });

  const joined = (object, length, separator, text) => {
    let out = '';
    for (let at = 0; at < length; at++) {
      const value = object[at];
      if (at > 0) out += separator;
      if (value !== null && value !== undefined) out += text(value);
    }
    return out;
  };
  array('join', (object, length, [separator]) =>
    joined(object, length, separator === undefined ? ',' : `${separator}`, (value) => `${value}`));
  array('toLocaleString', (object, length) =>
    joined(object, length, ',', (value) => `${value.toLocaleString()}`));

  array('shift', (object, length) => {
    const first = object[0];
    for (let at = 1; at < length; at++) move(object, at, at - 1);
    delete object[length - 1];
    object.length = length - 1;
    return first;
  });

  array('unshift', (object, length, items, count) => {
    if (length + count > MAX_SAFE_INTEGER) throw new TypeError('the array is too long');
    if (count > 0) {
      for (let at = length - 1; at >= 0; at--) move(object, at, at + count);
      for (let at = 0; at < count; at++) object[at] = items[at];
    }
    object.length = length + count;
    return length + count;
  });

  array('slice', (object, length, [start, end]) => {
    const to = from(end, length, length);
    const first = from(start, length, 0);
    const out = like(object, max(to - first, 0));
    let n = 0;
    for (let at = first; at < to; at++, n++) if (at in object) put(out, n, object[at]);
    out.length = n;
    return out;
  });

  array('splice', (object, length, args, given) => {
    const [start, remove, ...items] = args;
    const first = from(start, length, 0);
    const removed = given === 0 ? 0 : given === 1 ? length - first : min(max(integer(remove), 0), length - first);
    const out = like(object, removed);
    for (let n = 0; n < removed; n++) if (first + n in object) put(out, n, object[first + n]);
    out.length = removed;
    const more = items.length - removed;
    if (more < 0) {
      for (let at = first + removed; at < length; at++) move(object, at, at + more);
      for (let at = length - 1; at >= length + more; at--) delete object[at];
    } else if (more > 0) {
      for (let at = length - 1; at >= first + removed; at--) move(object, at, at + more);
    }
    for (let n = 0; n < items.length; n++) object[first + n] = items[n];
    object.length = length + more;
    return out;
  });

  const spreads = (value) => {
    if (value === null || typeof value !== 'object') return false;
    const own = value[isConcatSpreadable];
    return own === undefined ? isArray(value) : Boolean(own);
  };
  const concatLong = (self, args) => isLong(self) && spreads(self) || args.some((value) => isLong(value) && spreads(value));
  array('concat', (object, _, args) => {
    const out = like(object, 0);
    let n = 0;
    for (const item of [object, ...args]) {
      if (!spreads(item)) {
        put(out, n++, item);
        continue;
      }
      const length = lengthOf(item);
      for (let at = 0; at < length; at++, n++) if (at in item) put(out, n, item[at]);
    }
    out.length = n;
    return out;
  }, concatLong);

  // Any of the arrays inside may be long.
  const flatten = (out, object, depth, n) => {
    const length = lengthOf(object);
    for (let at = 0; at < length; at++) {
      if (!(at in object)) continue;
      const item = object[at];
      if (depth > 0 && isArray(item)) n = flatten(out, item, depth - 1, n);
      else put(out, n++, item);
    }
    return n;
  };
  array('flat', (object, _, [depth]) => {
    const out = like(object, 0);
    flatten(out, object, depth === undefined ? 1 : integer(depth), 0);
    return out;
  }, () => true);
  array('flatMap', (object, length, [map, self]) => {
    isFunction(map);
    const out = like(object, 0);
    let n = 0;
    for (let at = 0; at < length; at++) {
      if (!(at in object)) continue;
      const item = apply(map, self, [object[at], at, object]);
      if (isArray(item)) n = flatten(out, item, 0, n);
      else put(out, n++, item);
    }
    return out;
  }, () => true);

  // The elements in order, without holes; undefined ones are left for the end.
  const nativeSort = Array.prototype.sort;
  const sorted = (items, compare) => {
    if (compare !== undefined) return apply(nativeSort, items, [compare]);
    const texts = [];
    for (let at = 0; at < items.length; at++) texts[at] = [`${items[at]}`, items[at]];
    apply(nativeSort, texts, [(a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0)]);
    for (let at = 0; at < items.length; at++) items[at] = texts[at][1];
    return items;
  };
  const gathered = (object, length, holes) => {
    const items = [];
    let n = 0;
    let none = 0;
    for (let at = 0; at < length; at++) {
      if (!holes && !(at in object)) continue;
      const value = object[at];
      if (value === undefined) none++;
      else items[n++] = value;
    }
    return [items, none];
  };
  const compares = (compare) => {
    if (compare !== undefined) isFunction(compare);
  };
  // Short texts of numbers are compared a few million times: no longer without a look than that.
  const sortsLong = (self) => self !== null && self !== undefined && self.length > LONG_LIKE;
  array('sort', (object, length, [compare]) => {
    compares(compare);
    const [items, none] = gathered(object, length, false);
    sorted(items, compare);
    let at = 0;
    for (; at < items.length; at++) object[at] = items[at];
    for (let n = 0; n < none; n++, at++) object[at] = undefined;
    for (; at < length; at++) delete object[at];
    return object;
  }, sortsLong);
  array('toSorted', (object, length, [compare]) => {
    compares(compare);
    const [items, none] = gathered(object, length, true);
    sorted(items, compare);
    for (let n = 0; n < none; n++) items[items.length] = undefined;
    return items;
  }, sortsLong);

  array('toReversed', (object, length) => {
    const out = [];
    for (let at = 0; at < length; at++) out[at] = object[length - 1 - at];
    return out;
  });
  array('with', (object, length, [index, value]) => {
    const place = integer(index) < 0 ? length + integer(index) : integer(index);
    if (place < 0 || place >= length) throw new RangeError('invalid array index');
    const out = [];
    for (let at = 0; at < length; at++) out[at] = at === place ? value : object[at];
    return out;
  });
  array('toSpliced', (object, length, args, given) => {
    const [start, remove, ...items] = args;
    const first = from(start, length, 0);
    const removed = given === 0 ? 0 : given === 1 ? length - first : min(max(integer(remove), 0), length - first);
    const out = [];
    let n = 0;
    for (let at = 0; at < first; at++) out[n++] = object[at];
    for (let at = 0; at < items.length; at++) out[n++] = items[at];
    for (let at = first + removed; at < length; at++) out[n++] = object[at];
    return out;
  });

  const isLongList = (_, args) => {
    const items = args[0];
    return items !== null && typeof items === 'object' && (items[iterator] === undefined || items[iterator] === null) && isLong(items);
  };
  replace(Array, 'from', isLongList, (_, self, [items, map, inside]) => {
    if (map !== undefined) isFunction(map);
    const length = lengthOf(items);
    const out = self === Array || typeof self !== 'function' ? [] : construct(self, [length]);
    for (let at = 0; at < length; at++) {
      put(out, at, map === undefined ? items[at] : apply(map, inside, [items[at], at]));
    }
    out.length = length;
    return out;
  });

  // Typed arrays: runs are sorted by the built-in, and merged.
  const Typed = Object.getPrototypeOf(Uint8Array.prototype);
  const typedLength = Object.getOwnPropertyDescriptor(Typed, 'length').get;
  const typedSort = Typed.sort;
  const { subarray, set, slice: copy } = Typed;
  const RUN = 1 << 18;
  const isLongTyped = (self, args) =>
    args[0] === undefined && isView(self) && apply(typedLength, self, []) > RUN;
  // NaN is greater than all, and 0 than -0.
  const precedes = (a, b) => a < b || (a === b ? a === 0 && 1 / a < 1 / b : b !== b && a === a);
  const merge = (a, b, into) => {
    let x = 0;
    let y = 0;
    for (let at = 0; at < into.length; at++) {
      const right = x === a.length || (y < b.length && precedes(b[y], a[x]));
      into[at] = right ? b[y++] : a[x++];
    }
  };
  const sortTyped = (all) => {
    const length = apply(typedLength, all, []);
    for (let at = 0; at < length; at += RUN) {
      look();
      apply(typedSort, apply(subarray, all, [at, at + RUN]), []);
    }
    let source = all;
    let target = apply(copy, all, []);
    for (let run = RUN; run < length; run *= 2) {
      for (let at = 0; at < length; at += 2 * run) {
        const part = (object, low, high) => apply(subarray, object, [low, min(high, length)]);
        merge(part(source, at, at + run), part(source, min(at + run, length), at + 2 * run), part(target, at, at + 2 * run));
      }
      const other = source;
      source = target;
      target = other;
    }
    if (source !== all) apply(set, all, [source]);
    return all;
  };
  replace(Typed, 'sort', isLongTyped, (_, self) => sortTyped(self));
  replace(Typed, 'toSorted', isLongTyped, (_, self) => sortTyped(apply(copy, self, [])));

  // Texts: a search looks for interrupts, and so does all that searches again and again.
  const Texts = String.prototype;
  const { indexOf, lastIndexOf, slice } = Texts;
  const isLongText = (text, part) =>
    typeof text === 'string' && (text.length > LONG_TEXT || (typeof part === 'string' && text.length * part.length > AT_ONCE));
  const searchesLong = (self, args) => isLongText(self, args[0]);
  // The first place from `start` on. Windows grow, so that what is copied is in proportion to how far the place is.
  const find = (text, part, start) => {
    if (part.length === 0) return start <= text.length ? start : -1;
    const most = max(trunc(AT_ONCE / part.length), 1);
    let step = min(most, 1 << 12);
    for (let at = start; at + part.length <= text.length; at += step, step = min(2 * step, most)) {
      if (step === most) look();
      const found = apply(indexOf, apply(slice, text, [at, at + step - 1 + part.length]), [part]);
      if (found >= 0) return at + found;
    }
    return -1;
  };
  replace(Texts, 'indexOf', searchesLong, (_, text, [part, start]) =>
    find(text, `${part}`, min(max(integer(start), 0), text.length)));
  replace(Texts, 'includes', searchesLong, (native, text, [part, start]) => {
    if (part instanceof RegExp) return apply(native, text, [part, start]);
    return find(text, `${part}`, min(max(integer(start), 0), text.length)) >= 0;
  });
  replace(Texts, 'lastIndexOf', searchesLong, (_, text, [part, start]) => {
    const wanted = `${part}`;
    const number = Number(start);
    const last = number !== number ? text.length : min(max(integer(number), 0), text.length);
    const step = max(trunc(AT_ONCE / max(wanted.length, 1)), 1);
    for (let high = min(last, text.length - wanted.length); high >= 0; high -= step) {
      look();
      const low = max(high - step + 1, 0);
      const window = apply(slice, text, [low, high + wanted.length]);
      const found = apply(lastIndexOf, window, [wanted]);
      if (found >= 0) return low + found;
    }
    return -1;
  });

  // A pattern that is no text has a method of its own.
  // The built-in copies character by character; texts that are added are copied as a whole, when they are read.
  const nativeRepeat = Texts.repeat;
  const repeated = (unit, length) => {
    if (unit.length >= length) return apply(slice, unit, [0, length]);
    let out = apply(nativeRepeat, unit, [max(trunc(LONG_TEXT / 16 / unit.length), 1)]);
    while (2 * out.length <= length) out += out;
    const rest = length - out.length;
    return rest === 0 ? out : out + (rest < LONG_TEXT ? apply(slice, out, [0, rest]) : repeated(unit, rest));
  };
  const longest = (self, count) => typeof self === 'string' && self.length > 0 && self.length * count > LONG_TEXT && self.length * count < 2 ** 30;
  replace(Texts, 'repeat', (self, args) => longest(self, args[0]), (_, text, [count]) => repeated(text, text.length * trunc(count)));
  const padding = (text, length, fill) => repeated(fill === undefined ? ' ' : `${fill}`, trunc(length) - text.length);
  const padsLong = (self, args) => typeof self === 'string' && args[0] - self.length > LONG_TEXT && args[0] < 2 ** 30 && args[1] !== '';
  replace(Texts, 'padStart', padsLong, (_, text, [length, fill]) => padding(text, length, fill) + text);
  replace(Texts, 'padEnd', padsLong, (_, text, [length, fill]) => text + padding(text, length, fill));

  const byText = (method) => (self, args) => {
    const pattern = args[0];
    if (!isLongText(self, pattern)) return false;
    return pattern === null || typeof pattern !== 'object' || pattern[method] === undefined || pattern[method] === null;
  };
  replace(Texts, 'split', byText(Symbol.split), (_, text, [separator, limit]) => {
    const most = limit === undefined ? 4294967295 : limit >>> 0;
    const out = [];
    if (most === 0) return out;
    if (separator === undefined) return [text];
    const part = `${separator}`;
    let n = 0;
    let at = 0;
    if (part === '') {
      for (; n < text.length && n < most; n++) out[n] = text[n];
      return out;
    }
    for (let found = find(text, part, 0); found >= 0; found = find(text, part, at)) {
      out[n++] = apply(slice, text, [at, found]);
      if (n === most) return out;
      at = found + part.length;
    }
    out[n] = apply(slice, text, [at]);
    return out;
  });

  const substituted = (text, part, at, value) => {
    if (typeof value === 'function') return `${value(part, at, text)}`;
    let out = '';
    for (let n = 0; n < value.length; n++) {
      const next = value[n] === '$' ? value[n + 1] : undefined;
      if (next === '$') out += '$';
      else if (next === '&') out += part;
      else if (next === '`') out += apply(slice, text, [0, at]);
      else if (next === "'") out += apply(slice, text, [at + part.length]);
      else {
        out += value[n];
        continue;
      }
      n++;
    }
    return out;
  };
  const replaced = (text, pattern, value, all) => {
    const part = `${pattern}`;
    const by = typeof value === 'function' ? value : `${value}`;
    let out = '';
    let at = 0;
    for (let found = find(text, part, 0); found >= 0; ) {
      out += apply(slice, text, [at, found]) + substituted(text, part, found, by);
      at = found + part.length;
      found = all ? find(text, part, part === '' ? found + 1 : at) : -1;
    }
    return out + apply(slice, text, [at]);
  };
  replace(Texts, 'replace', byText(Symbol.replace), (_, text, [pattern, value]) => replaced(text, pattern, value, false));
  replace(Texts, 'replaceAll', byText(Symbol.replace), (_, text, [pattern, value]) => replaced(text, pattern, value, true));
})
