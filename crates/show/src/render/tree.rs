//! Call sites as a tree of call paths, from `main` inwards.

use std::io::{self, Write};

use super::report::site_label;
use super::sites::measures;
use lapscope_data::model::Nanos;
use lapscope_data::symbols::FrameName;
use lapscope_data::text::plural;
use lapscope_data::text::style::{display_width, Style};
use lapscope_data::text::units::{bytes, count, percent, MeanOfRanks};
use lapscope_data::text::visible::visible;
use lapscope_measure::sites::Site;

/// A place and everything that was called from there.
#[derive(Debug, Default)]
struct TreeNode<'a> {
    label: String,
    time: Nanos,
    share: f64,
    children: Vec<TreeNode<'a>>,
    sites: Vec<&'a Site>,
}

impl<'a> TreeNode<'a> {
    fn insert(&mut self, path: &[String], site: &'a Site) {
        self.time += site.numbers.time_ns;
        self.share += site.numbers.share;
        let Some((outermost, rest)) = path.split_first() else {
            self.sites.push(site);
            return;
        };
        let at = self.children.iter().position(|child| child.label == *outermost);
        let at = at.unwrap_or_else(|| {
            self.children.push(TreeNode { label: outermost.clone(), ..TreeNode::default() });
            self.children.len() - 1
        });
        self.children[at].insert(rest, site);
    }

    /// Joins frames that lead to one place only.
    fn collapse(&mut self) {
        while self.sites.is_empty() && self.children.len() == 1 {
            let child = self.children.remove(0);
            self.label = format!("{} > {}", self.label, child.label);
            self.children = child.children;
            self.sites = child.sites;
        }
        for child in &mut self.children {
            child.collapse();
        }
        self.children.sort_by_key(|child| std::cmp::Reverse(child.time));
    }
}

/// Writes the sites, which have their frames, as a tree with times from the leaves summed up.
///
/// # Errors
/// Of the writer.
pub fn write(
    out: &mut dyn Write,
    sites: &[Site],
    mean: MeanOfRanks,
    style: Style,
) -> io::Result<()> {
    let mut root = TreeNode::default();
    for site in sites {
        let mut path: Vec<String> =
            site.frames.iter().flatten().rev().map(FrameName::brief).collect();
        if path.is_empty() {
            path.push("(no call path)".to_owned());
        }
        if site.truncated {
            path.insert(0, "…".to_owned());
        }
        root.insert(&path, site);
    }
    for child in &mut root.children {
        child.collapse();
    }
    root.children.sort_by_key(|child| std::cmp::Reverse(child.time));
    let head = match is_narrow(style) {
        false => format!("{:>7}  {:>8}  call path", "share", "time"),
        true => "call path  share, time".to_owned(),
    };
    writeln!(out, "{}", style.dim(&head))?;
    for child in &root.children {
        write_node(out, child, "", "", mean, style)?;
    }
    Ok(())
}

fn write_node(
    out: &mut dyn Write,
    node: &TreeNode<'_>,
    guide: &str,
    below: &str,
    mean: MeanOfRanks,
    style: Style,
) -> io::Result<()> {
    if let ([site], true) = (node.sites.as_slice(), node.children.is_empty()) {
        return write_line(out, node, guide, Some(site), mean, style);
    }
    write_line(out, node, guide, None, mean, style)?;
    let mut left = node.sites.len() + node.children.len();
    let mut branch = || {
        left -= 1;
        if left == 0 {
            (format!("{below}└ "), format!("{below}  "))
        } else {
            (format!("{below}├ "), format!("{below}│ "))
        }
    };
    for site in &node.sites {
        let (guide, _) = branch();
        let (time, share) = (site.numbers.time_ns, site.numbers.share);
        let leaf = TreeNode { time, share, ..TreeNode::default() };
        write_line(out, &leaf, &guide, Some(site), mean, style)?;
    }
    for child in &node.children {
        let (guide, below) = branch();
        write_node(out, child, &guide, &below, mean, style)?;
    }
    Ok(())
}

/// Numbers in front of places leave too little room.
fn is_narrow(style: Style) -> bool {
    style.width < 60
}

/// Numbers, place, and the calls there when there is only one kind of them; on several lines where one has no room.
fn write_line(
    out: &mut dyn Write,
    node: &TreeNode<'_>,
    guide: &str,
    site: Option<&Site>,
    mean: MeanOfRanks,
    style: Style,
) -> io::Result<()> {
    let (share, time) = (percent(node.share), mean.time(node.time));
    let label = site.map(site_label).unwrap_or_default();
    let facts = site.map(|site| facts(site, mean)).unwrap_or_default();
    let (numbers, facts) = match (is_narrow(style), facts.as_str()) {
        (false, _) => (format!("{share:>7}  {time:>8}  "), facts),
        (true, "") => (String::new(), format!("{share}, {time}")),
        (true, facts) => (String::new(), format!("{share}, {time}, {facts}")),
    };
    let guide = shortened(guide, (style.width - display_width(&numbers)) / 3);
    let (place, label) = (visible(&node.label), style.bold(&visible(&label)));
    let parts: Vec<&str> = [&place, label.as_str(), facts.as_str()]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect();
    let first = format!("{numbers}{guide}");
    // Whatever stands below is deeper; a guide has no part in text that goes on.
    let room = Style { width: style.width.saturating_sub(display_width(&first)), ..style };
    let text = room.wrap_painted(&parts.join("  "), "", "  ");
    let rest = format!("\n{}", " ".repeat(display_width(&first)));
    writeln!(out, "{numbers}{}{}", style.dim(&guide), text.replace('\n', &rest))
}

/// The last `columns` of a guide that is longer: its begin is the same in all lines around.
fn shortened(guide: &str, columns: usize) -> String {
    let length = guide.chars().count();
    if length <= columns {
        return guide.to_owned();
    }
    let tail: String = guide.chars().skip(length + 1 - columns.max(1)).collect();
    format!("…{tail}")
}

fn facts(site: &Site, mean: MeanOfRanks) -> String {
    let numbers = &site.numbers;
    let mut facts = vec![format!("{} call{}", count(numbers.calls), plural(numbers.calls))];
    if numbers.bytes > 0 {
        facts.push(bytes(numbers.bytes));
    }
    if numbers.ended_requests > 0 {
        facts.push(format!("{} exposed", mean.time(numbers.exposed_ns)));
    }
    if numbers.pending > 0 {
        facts.push(format!("{} never ended", numbers.pending));
    }
    facts.extend(measures(&site.measures, mean));
    facts.join(", ")
}
