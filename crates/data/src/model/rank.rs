//! Who a process is: its rank for people, its key in a file.

use std::fmt;
use std::str::FromStr;

use rusqlite::types::{FromSql, FromSqlResult, ValueRef};
use serde::{de, Deserialize, Deserializer, Serialize, Serializer};

/// A rank in one MPI_COMM_WORLD of a job: `3` in the first world, which was launched, `2:0` in another, which was
/// spawned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank {
    /// `rank.world`
    pub world: i64,
    /// `rank.world_rank`
    pub number: i64,
}

impl Rank {
    pub const FIRST_WORLD: i64 = 1;

    pub fn of_first_world(number: i64) -> Rank {
        Rank { world: Rank::FIRST_WORLD, number }
    }

    /// Another rank of the same world.
    pub fn neighbor(self, number: i64) -> Rank {
        Rank { number, ..self }
    }
}

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.world {
            Rank::FIRST_WORLD => self.number.fmt(f),
            world => write!(f, "{world}:{}", self.number),
        }
    }
}

impl FromStr for Rank {
    type Err = String;

    fn from_str(text: &str) -> Result<Rank, String> {
        let (world, number) = text.split_once(':').unwrap_or(("1", text));
        let parse = |text: &str| text.parse::<u32>().map(i64::from).map_err(|_| ());
        match (parse(world), parse(number)) {
            (Ok(world), Ok(number)) if world > 0 => Ok(Rank { world, number }),
            _ => Err("a rank is a number, as 3; of spawned processes world:rank, as 2:0".into()),
        }
    }
}

/// A number in the first world, text in the others.
impl Serialize for Rank {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.world {
            Rank::FIRST_WORLD => serializer.serialize_i64(self.number),
            _ => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for Rank {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Rank, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Number(i64),
            Text(String),
        }
        match Written::deserialize(deserializer)? {
            Written::Number(number) => Ok(Rank::of_first_world(number)),
            Written::Text(text) => text.parse().map_err(de::Error::custom),
        }
    }
}

/// What other rows call a process: `rank.rank`. In a file of one process that is the number of its rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RankKey(pub i64);

impl FromSql for RankKey {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        i64::column_result(value).map(RankKey)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_read_as_they_are_written() {
        for (text, world, number) in [("3", 1, 3), ("2:0", 2, 0)] {
            let rank = Rank { world, number };
            assert_eq!((text.parse(), rank.to_string().as_str()), (Ok(rank), text));
        }
        for text in ["", "-1", "0:1", "2:", "x"] {
            assert!(text.parse::<Rank>().is_err(), "{text}");
        }
        let json = serde_json::to_string(&[Rank::of_first_world(3), Rank { world: 2, number: 0 }]);
        assert_eq!(json.unwrap(), r#"[3,"2:0"]"#);
    }
}
