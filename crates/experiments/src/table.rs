//! Reads what the experiments print; the format is described in `examples/README.md`.

use std::collections::BTreeMap;

use super::results::{Spread, Table, TableRow, Value};

/// A line of a table that is none: which, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of what the program printed, {text:?}: {why}")]
pub struct NotATable {
    pub line: usize,
    pub text: String,
    pub why: &'static str,
}

/// All tables of an output, in their order; other lines are passed over.
///
/// # Errors
/// A table has no columns, or a row has more or fewer values than there are columns.
pub fn read(output: &str) -> Result<Vec<Table>, NotATable> {
    let mut tables = Vec::new();
    let mut lines = output.lines().enumerate().peekable();
    while let Some((number, line)) = lines.next() {
        let Some(head) = line.strip_prefix("table ") else { continue };
        let fail = |(number, text): (usize, &str), why| {
            Err(NotATable { line: number + 1, text: text.to_owned(), why })
        };
        let mut table = read_head(head);
        let columns: Vec<&str> =
            lines.next().map_or("", |(_, line)| line).split_whitespace().collect();
        if columns.is_empty() || columns.iter().any(|column| column.parse::<f64>().is_ok()) {
            return fail((number, line), "the line after it does not name columns");
        }
        while let Some(&(number, line)) = lines.peek() {
            let Some(values) = read_values(line) else { break };
            if values.len() != columns.len() {
                return fail((number, line), "not as many values as columns");
            }
            table.rows.push(row(&columns, &values));
            lines.next();
        }
        tables.push(table);
    }
    Ok(tables)
}

/// `NAME key=value …`
fn read_head(head: &str) -> Table {
    let mut words = head.split_whitespace();
    let name = words.next().unwrap_or_default().to_owned();
    let pair = |word: &str| word.split_once('=').map(|(key, value)| (key.into(), value.into()));
    Table { name, attributes: words.filter_map(pair).collect(), rows: Vec::new() }
}

/// The values of a row; `None`: it is none.
fn read_values(line: &str) -> Option<Vec<Option<f64>>> {
    let value = |word: &str| match word {
        "-" => Some(None),
        _ => word.parse::<f64>().ok().filter(|number| number.is_finite()).map(Some),
    };
    let values: Option<Vec<_>> = line.split_whitespace().map(value).collect();
    values.filter(|values| !values.is_empty())
}

/// Quartiles go with their median.
fn row(columns: &[&str], values: &[Option<f64>]) -> TableRow {
    let by_name: BTreeMap<&str, Option<f64>> =
        columns.iter().copied().zip(values.iter().copied()).collect();
    let quartile = |name: &str, end: &str| by_name.get(&*format!("{name}{end}")).copied().flatten();
    let is_quartile = |name: &str| {
        let of = name.strip_suffix("_lo").or_else(|| name.strip_suffix("_hi"));
        of.is_some_and(|of| by_name.contains_key(of))
    };
    let quantities = by_name.iter().filter(|(name, _)| !is_quartile(name));
    let value = |(&name, &median): (&&str, &Option<f64>)| {
        let (low, high) = (quartile(name, "_lo"), quartile(name, "_hi"));
        let program = median.map(|median| Spread { median, low, high });
        (name.to_owned(), Value { program, outside: None })
    };
    TableRow { values: quantities.map(value).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
# two ranks
table overlap side=send first=none
      tag      bytes      l0_us   l0_us_lo   l0_us_hi   arrived_us
      100       1024       3.10       3.01       3.40            -
      101      65536      41.25      40.00      44.00         12.5

table verdict
  growth_percent
  99.5
# the end
";

    #[test]
    fn tables_with_their_quartiles() {
        let tables = read(OUTPUT).unwrap();
        assert_eq!(tables.len(), 2);
        assert_eq!((tables[0].attribute("side"), tables[0].attribute("none")), ("send", ""));
        let row = &tables[0].rows[0];
        assert_eq!((row.tag(), row.bytes()), (Some(100), Some(1024)));
        let expected = Spread { median: 3.1, low: Some(3.01), high: Some(3.4) };
        assert_eq!(row.program("l0_us"), Some(expected));
        assert_eq!(row.program("l0_us_lo"), None);
        assert_eq!(row.values["arrived_us"], Value::default());
        assert_eq!(tables[0].rows[1].number("arrived_us"), Some(12.5));
        assert_eq!(tables[1].rows[0].number("growth_percent"), Some(99.5));
    }

    #[test]
    fn what_is_no_table_is_named() {
        let error = read("table a\n1 2\n").unwrap_err();
        assert_eq!((error.line, error.why), (1, "the line after it does not name columns"));
        let error = read("table a\nbytes x_us\n1 2\n1 2 3\n").unwrap_err();
        assert_eq!((error.line, error.text.as_str()), (4, "1 2 3"));
        assert!(read("table a").is_err());
        assert_eq!(read("nothing\n").unwrap(), []);
    }
}
