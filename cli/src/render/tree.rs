//! Call sites as a tree of call paths, from `main` inwards.

use std::io::{self, Write};

use super::report::site_label;
use super::sites::measures;
use super::style::Style;
use super::units::{bytes, count, percent, time};
use crate::analysis::problem::plural;
use crate::analysis::sites::Site;
use crate::model::Nanos;
use crate::symbols::FrameName;

/// A place and everything that was called from there.
#[derive(Debug, Default)]
struct Node<'a> {
    label: String,
    time: Nanos,
    share: f64,
    children: Vec<Node<'a>>,
    sites: Vec<&'a Site>,
}

impl<'a> Node<'a> {
    fn insert(&mut self, path: &[String], site: &'a Site) {
        self.time += site.numbers.time_ns;
        self.share += site.numbers.share;
        let Some((outermost, rest)) = path.split_first() else {
            self.sites.push(site);
            return;
        };
        let at = self.children.iter().position(|child| child.label == *outermost);
        let at = at.unwrap_or_else(|| {
            self.children.push(Node { label: outermost.clone(), ..Node::default() });
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
pub fn write(out: &mut dyn Write, sites: &[Site], style: Style) -> io::Result<()> {
    let mut root = Node::default();
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
    let head = format!("{:>7}  {:>8}  call path", "share", "time");
    writeln!(out, "{}", style.dim(&head))?;
    for child in &root.children {
        write_node(out, child, "", "", style)?;
    }
    Ok(())
}

fn write_node(
    out: &mut dyn Write,
    node: &Node<'_>,
    guide: &str,
    below: &str,
    style: Style,
) -> io::Result<()> {
    if let ([site], true) = (node.sites.as_slice(), node.children.is_empty()) {
        return write_line(out, node, guide, Some(site), style);
    }
    write_line(out, node, guide, None, style)?;
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
        let leaf = Node { time, share, ..Node::default() };
        write_line(out, &leaf, &guide, Some(site), style)?;
    }
    for child in &node.children {
        let (guide, below) = branch();
        write_node(out, child, &guide, &below, style)?;
    }
    Ok(())
}

/// One line: numbers, place, and the calls there when there is only one kind of them.
fn write_line(
    out: &mut dyn Write,
    node: &Node<'_>,
    guide: &str,
    site: Option<&Site>,
    style: Style,
) -> io::Result<()> {
    let numbers = format!("{:>7}  {:>8}  ", percent(node.share), time(node.time));
    let label = site.map(site_label).unwrap_or_default();
    let facts = site.map(|site| format!("  {}", facts(site))).unwrap_or_default();
    let used = [&numbers, guide, &label, &facts].into_iter().map(|part| part.chars().count());
    let room = style.width.saturating_sub(used.sum::<usize>() + 2).max(20);
    let mut place = cut_front(&node.label, room);
    if !place.is_empty() && site.is_some() {
        place.push_str("  ");
    }
    writeln!(out, "{numbers}{}{place}{}{facts}", style.dim(guide), style.bold(&label))
}

fn facts(site: &Site) -> String {
    let numbers = &site.numbers;
    let mut facts = vec![format!("{} call{}", count(numbers.calls), plural(numbers.calls))];
    if numbers.bytes > 0 {
        facts.push(bytes(numbers.bytes));
    }
    if numbers.ended_requests > 0 {
        facts.push(format!("{} completing", time(numbers.completion_ns)));
    }
    if numbers.pending > 0 {
        facts.push(format!("{} never ended", numbers.pending));
    }
    facts.extend(measures(&site.measures));
    facts.join(", ")
}

/// Cuts at the front: of a collapsed chain the innermost frames tell most.
fn cut_front(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
    let tail: String = text.chars().skip(length + 1 - width.max(1)).collect();
    format!("…{tail}")
}
