//! The times of a site, which a record has of a node, shared out over the node's ranks. The record says which rank had the most and how
//! much; what is left over goes to the others in proportion to their times in such calls, as far as those are not used up. So sites of
//! one rank or two come out as they were, their posts apart, and the times of each rank by kind of call add up to what the record has of it.

/// What is still to be shared out of a kind of time, by rank.
#[derive(Debug, Clone)]
pub struct Budget {
    left: Vec<i64>,
}

impl Budget {
    pub fn new(of_ranks: Vec<i64>) -> Budget {
        Budget { left: of_ranks }
    }

    /// Parts of `total` for each rank. `most`: the rank that had most, and how much of `total` at least. `alone`: no other had any.
    pub fn share(&mut self, total: i64, most: Option<(usize, i64)>, alone: bool) -> Vec<i64> {
        let mut parts = vec![0; self.left.len()];
        let (rank, own) = most.unwrap_or((0, 0));
        let own = if alone || parts.len() == 1 { total } else { own.min(total) };
        let mut weights = self.left.clone();
        if most.is_some() {
            parts[rank] = own;
            weights[rank] = 0;
        }
        let rest = divided(total - parts[rank], &weights);
        for (part, more) in parts.iter_mut().zip(rest) {
            *part += more;
        }
        for (left, part) in self.left.iter_mut().zip(&parts) {
            *left = (*left - part).max(0);
        }
        parts
    }
}

/// Whole parts in proportion to weights, which add up to `total`; equal ones where no weight is left.
pub fn divided(total: i64, weights: &[i64]) -> Vec<i64> {
    let sum: i128 = weights.iter().map(|weight| i128::from(*weight)).sum();
    let equal = sum == 0;
    let sum = if equal { weights.len() as i128 } else { sum };
    let (mut reached, mut given) = (0i128, 0i128);
    let each = weights.iter().map(|weight| {
        reached += if equal { 1 } else { i128::from(*weight) };
        let until = i128::from(total) * reached / sum;
        let part = until - given;
        given = until;
        part as i64
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up() {
        assert_eq!(divided(10, &[1, 1, 1]), [3, 3, 4]);
        assert_eq!(divided(10, &[0, 0]), [5, 5]);
        assert_eq!(divided(7, &[0, 3, 4]), [0, 3, 4]);
        assert_eq!(divided(i64::MAX, &[i64::MAX, i64::MAX]).iter().sum::<i64>(), i64::MAX);
    }

    #[test]
    fn two_ranks_come_out_as_they_were() {
        let mut budget = Budget::new(vec![40, 60]);
        assert_eq!(budget.share(30, Some((0, 25)), false), [25, 5]);
        assert_eq!(budget.share(70, Some((1, 55)), false), [15, 55]);
        assert_eq!(budget.left, [0, 0]);
    }

    #[test]
    fn what_is_left_goes_where_it_is_due() {
        let mut budget = Budget::new(vec![50, 10, 40]);
        assert_eq!(budget.share(50, Some((0, 50)), true), [50, 0, 0]);
        assert_eq!(budget.share(50, None, false), [0, 10, 40]);
    }
}
