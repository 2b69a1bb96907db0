//! Clustered vectors, the same every time, their exact neighbours, and recall.

/// Nearest vectors that are asked for.
pub const NEAREST: usize = 10;

/// Numbers by xorshift, the same every time.
pub struct Random(pub u64);

impl Random {
    fn unit(&mut self) -> f32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 40) as f32 / (1_u64 << 24) as f32
    }

    /// About normal: the sum of twelve.
    pub fn normal(&mut self) -> f32 {
        (0..12).map(|_| self.unit()).sum::<f32>() - 6.0
    }
}

/// Points around 1,000 centres.
pub fn points(
    count: usize,
    dimensions: usize,
    random: &mut Random,
    centres: &[Vec<f32>],
) -> Vec<Vec<f32>> {
    let one = |_| {
        let centre = &centres[(random.unit() * centres.len() as f32) as usize % centres.len()];
        centre.iter().take(dimensions).map(|c| c + 0.5 * random.normal()).collect()
    };
    (0..count).map(one).collect()
}

/// The nearest, by looking at all.
pub fn exact(points: &[Vec<f32>], query: &[f32]) -> Vec<usize> {
    let far = |p: &[f32]| p.iter().zip(query).map(|(a, b)| (a - b) * (a - b)).sum::<f32>();
    let mut all: Vec<(f32, usize)> = points.iter().enumerate().map(|(n, p)| (far(p), n)).collect();
    all.select_nth_unstable_by(NEAREST, |a, b| a.0.total_cmp(&b.0));
    all.truncate(NEAREST);
    all.into_iter().map(|(_, n)| n).collect()
}

/// The share of the wanted that was found.
pub fn recall(found: &[Vec<usize>], wanted: &[Vec<usize>]) -> f64 {
    let hits: usize = found
        .iter()
        .zip(wanted)
        .map(|(found, wanted)| found.iter().filter(|n| wanted.contains(n)).count())
        .sum();
    hits as f64 / (wanted.len() * NEAREST) as f64
}
