//! Double metaphone: two codes of how a word sounds, the second one for names of other languages than English.
//! Source: L. Philips, "The Double Metaphone Search Algorithm" (C/C++ Users Journal, June 2000).

/// Letters of a code.
const LENGTH: usize = 4;

/// A word in capitals, with blanks behind it, and what is known of its codes.
struct Word {
    letters: Vec<char>,
    /// Letters without the blanks.
    count: isize,
    /// It looks Slavic or German.
    slavic: bool,
    at: isize,
    first: String,
    second: String,
}

/// The codes of a word.
pub fn codes(text: &str) -> [String; 2] {
    let mut letters: Vec<char> = text.chars().map(|c| c.to_ascii_uppercase()).collect();
    let count = letters.len() as isize;
    letters.extend([' '; 5]);
    let whole: String = letters.iter().collect();
    let slavic = whole.contains(['W', 'K']) || whole.contains("CZ") || whole.contains("WITZ");
    let (first, second) = (String::new(), String::new());
    let mut word = Word { letters, count, slavic, at: 0, first, second };
    if word.has(0, &["GN", "KN", "PN", "WR", "PS"]) {
        word.at += 1;
    }
    if word.get(0) == 'X' {
        word.add("S");
        word.at += 1;
    }
    while (word.first.len() < LENGTH || word.second.len() < LENGTH) && word.at < word.count {
        let step = word.letter(word.get(word.at));
        word.at += step;
    }
    word.first.truncate(LENGTH);
    word.second.truncate(LENGTH);
    [word.first, word.second]
}

impl Word {
    fn get(&self, at: isize) -> char {
        usize::try_from(at).ok().and_then(|at| self.letters.get(at)).copied().unwrap_or('\0')
    }

    /// The letter at a distance from the present one.
    fn near(&self, by: isize) -> char {
        self.get(self.at + by)
    }

    /// Whether one of some texts stands at a place.
    fn has(&self, at: isize, texts: &[&str]) -> bool {
        let Ok(at) = usize::try_from(at) else { return false };
        let Some(rest) = self.letters.get(at..) else { return false };
        let stands = |text: &&str| {
            let mut letters = rest.iter();
            text.chars().all(|c| letters.next() == Some(&c))
        };
        texts.iter().any(stands)
    }

    /// The same at a distance from the present letter.
    fn by(&self, by: isize, texts: &[&str]) -> bool {
        self.has(self.at + by, texts)
    }

    fn vowel(&self, at: isize) -> bool {
        matches!(self.get(at), 'A' | 'E' | 'I' | 'O' | 'U' | 'Y')
    }

    fn add(&mut self, code: &str) {
        self.both(code, code);
    }

    fn both(&mut self, first: &str, second: &str) {
        self.first.push_str(first);
        self.second.push_str(second);
    }

    fn last(&self) -> isize {
        self.count - 1
    }

    fn germanic(&self) -> bool {
        self.has(0, &["VAN ", "VON ", "SCH"])
    }

    /// Adds a letter's code and skips the same letter behind it.
    fn plain(&mut self, code: &str) -> isize {
        self.add(code);
        1 + isize::from(self.near(1) == self.near(0))
    }

    /// Adds what a letter sounds like; how many letters that was.
    fn letter(&mut self, letter: char) -> isize {
        match letter {
            'A' | 'E' | 'I' | 'O' | 'U' | 'Y' => {
                if self.at == 0 {
                    self.add("A");
                }
                1
            }
            'B' => self.plain("P"),
            'Ç' => {
                self.add("S");
                1
            }
            'C' => self.c(),
            'D' => self.d(),
            'F' => self.plain("F"),
            'G' => self.g(),
            'H' => self.h(),
            'J' => self.j(),
            'K' | 'Q' => self.plain("K"),
            'L' => self.l(),
            'M' => {
                let silent =
                    self.by(-1, &["UMB"]) && (self.at + 1 == self.last() || self.by(2, &["ER"]));
                let step = 1 + isize::from(silent || self.near(1) == 'M');
                self.add("M");
                step
            }
            'N' => self.plain("N"),
            'Ñ' => {
                self.add("N");
                1
            }
            'P' => {
                if self.near(1) == 'H' {
                    self.add("F");
                    return 2;
                }
                self.add("P");
                1 + isize::from(self.by(1, &["P", "B"]))
            }
            'R' => {
                let french = self.at == self.last()
                    && !self.slavic
                    && self.by(-2, &["IE"])
                    && !self.by(-4, &["ME", "MA"]);
                self.both(if french { "" } else { "R" }, "R");
                1 + isize::from(self.near(1) == 'R')
            }
            'S' => self.s(),
            'T' => self.t(),
            'V' => self.plain("F"),
            'W' => self.w(),
            'X' => {
                let silent = self.at == self.last()
                    && (self.by(-3, &["IAU", "EAU"]) || self.by(-2, &["AU", "OU"]));
                if !silent {
                    self.add("KS");
                }
                1 + isize::from(self.by(1, &["C", "X"]))
            }
            'Z' => {
                if self.near(1) == 'H' {
                    self.add("J");
                    return 2;
                }
                let slavic = self.slavic && self.at > 0 && self.near(-1) != 'T';
                if self.by(1, &["ZO", "ZI", "ZA"]) || slavic {
                    self.both("S", "TS");
                } else {
                    self.add("S");
                }
                1 + isize::from(self.near(1) == 'Z')
            }
            _ => 1,
        }
    }

    fn c(&mut self) -> isize {
        let german = self.at > 1
            && !self.vowel(self.at - 2)
            && self.by(-1, &["ACH"])
            && self.near(2) != 'I'
            && (self.near(2) != 'E' || self.by(-2, &["BACHER", "MACHER"]));
        if german {
            self.add("K");
            return 2;
        }
        if self.at == 0 && self.by(0, &["CAESAR"]) {
            self.add("S");
            return 2;
        }
        if self.by(0, &["CHIA"]) {
            self.add("K");
            return 2;
        }
        if self.by(0, &["CH"]) {
            return self.ch();
        }
        if self.by(0, &["CZ"]) && !self.by(-2, &["WICZ"]) {
            self.both("S", "X");
            return 2;
        }
        if self.by(1, &["CIA"]) {
            self.add("X");
            return 3;
        }
        if self.by(0, &["CC"]) && !(self.at == 1 && self.get(0) == 'M') {
            if self.by(2, &["I", "E", "H"]) && !self.by(2, &["HU"]) {
                let accident = self.at == 1 && self.near(-1) == 'A';
                let hard = accident || self.by(-1, &["UCCEE", "UCCES"]);
                self.add(if hard { "KS" } else { "X" });
                return 3;
            }
            self.add("K");
            return 2;
        }
        if self.by(0, &["CK", "CG", "CQ"]) {
            self.add("K");
            return 2;
        }
        if self.by(0, &["CI", "CE", "CY"]) {
            let italian = self.by(0, &["CIO", "CIE", "CIA"]);
            self.both("S", if italian { "X" } else { "S" });
            return 2;
        }
        self.add("K");
        if self.by(1, &[" C", " Q", " G"]) {
            3
        } else {
            1 + isize::from(self.by(1, &["C", "K", "Q"]) && !self.by(1, &["CE", "CI"]))
        }
    }

    fn ch(&mut self) -> isize {
        if self.at > 0 && self.by(0, &["CHAE"]) {
            self.both("K", "X");
            return 2;
        }
        let greek = self.at == 0
            && self.by(1, &["HARAC", "HARIS", "HOR", "HYM", "HIA", "HEM"])
            && !self.has(0, &["CHORE"]);
        if greek {
            self.add("K");
            return 2;
        }
        let before = self.by(-1, &["A", "O", "U", "E"]) || self.at == 0;
        let behind = ["L", "R", "N", "M", "B", "H", "F", "V", "W", " "];
        let hard = self.germanic()
            || self.by(-2, &["ORCHES", "ARCHIT", "ORCHID"])
            || self.by(2, &["T", "S"])
            || before && self.by(2, &behind);
        match (hard, self.at > 0, self.has(0, &["MC"])) {
            (true, ..) | (false, true, true) => self.add("K"),
            (false, true, false) => self.both("X", "K"),
            (false, false, _) => self.add("X"),
        }
        2
    }

    fn d(&mut self) -> isize {
        if self.by(0, &["DG"]) {
            if self.by(2, &["I", "E", "Y"]) {
                self.add("J");
                return 3;
            }
            self.add("TK");
            return 2;
        }
        self.add("T");
        1 + isize::from(self.by(0, &["DT", "DD"]))
    }

    fn g(&mut self) -> isize {
        if self.near(1) == 'H' {
            return self.gh();
        }
        if self.near(1) == 'N' {
            if self.at == 1 && self.vowel(0) && !self.slavic {
                self.both("KN", "N");
            } else if !self.by(2, &["EY"]) && self.near(1) != 'Y' && !self.slavic {
                self.both("N", "KN");
            } else {
                self.add("KN");
            }
            return 2;
        }
        if self.by(1, &["LI"]) && !self.slavic {
            self.both("KL", "L");
            return 2;
        }
        let soft = ["ES", "EP", "EB", "EL", "EY", "IB", "IL", "IN", "IE", "EI", "ER"];
        if self.at == 0 && (self.near(1) == 'Y' || self.by(1, &soft)) {
            self.both("K", "J");
            return 2;
        }
        let er = (self.by(1, &["ER"]) || self.near(1) == 'Y')
            && !self.has(0, &["DANGER", "RANGER", "MANGER"])
            && !self.by(-1, &["E", "I"])
            && !self.by(-1, &["RGY", "OGY"]);
        if er {
            self.both("K", "J");
            return 2;
        }
        if self.by(1, &["E", "I", "Y"]) || self.by(-1, &["AGGI", "OGGI"]) {
            if self.germanic() || self.by(1, &["ET"]) {
                self.add("K");
            } else if self.by(1, &["IER "]) {
                self.add("J");
            } else {
                self.both("J", "K");
            }
            return 2;
        }
        self.plain("K")
    }

    fn gh(&mut self) -> isize {
        if self.at > 0 && !self.vowel(self.at - 1) {
            self.add("K");
            return 2;
        }
        if self.at == 0 {
            self.add(if self.near(2) == 'I' { "J" } else { "K" });
            return 2;
        }
        // Parker's rule, with exceptions: hugh, bough, broughton.
        let silent = self.at > 1 && self.by(-2, &["B", "H", "D"])
            || self.at > 2 && self.by(-3, &["B", "H", "D"])
            || self.at > 3 && self.by(-4, &["B", "H"]);
        if silent {
            return 2;
        }
        if self.at > 2 && self.near(-1) == 'U' && self.by(-3, &["C", "G", "L", "R", "T"]) {
            self.add("F");
        } else if self.near(-1) != 'I' {
            self.add("K");
        }
        2
    }

    fn h(&mut self) -> isize {
        let spoken = (self.at == 0 || self.vowel(self.at - 1)) && self.vowel(self.at + 1);
        if spoken {
            self.add("H");
        }
        1 + isize::from(spoken)
    }

    fn j(&mut self) -> isize {
        let jose = self.by(0, &["JOSE"]);
        let san = self.has(0, &["SAN "]);
        if jose || san {
            if self.at == 0 && self.near(4) == ' ' || san {
                self.add("H");
            } else {
                self.both("J", "H");
            }
            return 1;
        }
        if self.at == 0 {
            self.both("J", "A");
        } else if self.vowel(self.at - 1) && !self.slavic && matches!(self.near(1), 'A' | 'O') {
            self.both("J", "H");
        } else if self.at == self.last() {
            self.both("J", "");
        } else if !self.by(1, &["L", "T", "K", "S", "N", "M", "B", "Z"])
            && !self.by(-1, &["S", "K", "L"])
        {
            self.add("J");
        }
        1 + isize::from(self.near(1) == 'J')
    }

    fn l(&mut self) -> isize {
        if self.near(1) != 'L' {
            self.add("L");
            return 1;
        }
        let last = self.last();
        let spanish = self.at == self.count - 3 && self.by(-1, &["ILLO", "ILLA", "ALLE"])
            || (self.has(last - 1, &["AS", "OS"]) || self.has(last, &["A", "O"]))
                && self.by(-1, &["ALLE"]);
        self.both("L", if spanish { "" } else { "L" });
        2
    }

    fn s(&mut self) -> isize {
        if self.by(-1, &["ISL", "YSL"]) {
            return 1;
        }
        if self.at == 0 && self.by(0, &["SUGAR"]) {
            self.both("X", "S");
            return 1;
        }
        if self.by(0, &["SH"]) {
            let german = self.by(1, &["HEIM", "HOEK", "HOLM", "HOLZ"]);
            self.add(if german { "S" } else { "X" });
            return 2;
        }
        if self.by(0, &["SIO", "SIA"]) {
            self.both("S", if self.slavic { "S" } else { "X" });
            return 3;
        }
        if self.at == 0 && self.by(1, &["M", "N", "L", "W"]) || self.by(1, &["Z"]) {
            self.both("S", "X");
            return 1 + isize::from(self.by(1, &["Z"]));
        }
        if self.by(0, &["SC"]) {
            return self.sc();
        }
        let french = self.at == self.last() && self.by(-2, &["AI", "OI"]);
        self.both(if french { "" } else { "S" }, "S");
        1 + isize::from(self.by(1, &["S", "Z"]))
    }

    fn sc(&mut self) -> isize {
        if self.near(2) != 'H' {
            let soft = self.by(2, &["I", "E", "Y"]);
            self.add(if soft { "S" } else { "SK" });
            return 3;
        }
        if self.by(3, &["ER", "EN"]) {
            self.both("X", "SK");
        } else if self.by(3, &["OO", "UY", "ED", "EM"]) {
            self.add("SK");
        } else if self.at == 0 && !self.vowel(3) && self.get(3) != 'W' {
            self.both("X", "S");
        } else {
            self.add("X");
        }
        3
    }

    fn t(&mut self) -> isize {
        if self.by(0, &["TION", "TIA", "TCH"]) {
            self.add("X");
            return 3;
        }
        if self.by(0, &["TH", "TTH"]) {
            if self.by(2, &["OM", "AM"]) || self.germanic() {
                self.add("T");
            } else {
                self.both("0", "T");
            }
            return 2;
        }
        self.add("T");
        1 + isize::from(self.by(1, &["T", "D"]))
    }

    fn w(&mut self) -> isize {
        if self.by(0, &["WR"]) {
            self.add("R");
            return 2;
        }
        if self.at == 0 && (self.vowel(1) || self.by(0, &["WH"])) {
            self.both("A", if self.vowel(1) { "F" } else { "A" });
        }
        let silent = self.at == self.last() && self.vowel(self.at - 1)
            || self.by(-1, &["EWSKI", "EWSKY", "OWSKI", "OWSKY"])
            || self.has(0, &["SCH"]);
        if silent {
            self.both("", "F");
            return 1;
        }
        if self.by(0, &["WICZ", "WITZ"]) {
            self.both("TS", "FX");
            return 4;
        }
        1
    }
}
