//! Colours for light and dark pages, and the style sheet. Colours are those of figures; a switch sets `data-theme`, else the
//! reader's system decides.

use std::fmt::Write;

use crate::plot::palette::{tones, Tone};

const SHEET: &str = include_str!("style.css");

/// The style sheet of a page.
pub fn sheet() -> String {
    let (light, dark) = (variables(|light, _| light), variables(|_, dark| dark));
    let (light, dark) = (light + LIGHT, dark + DARK);
    let light = format!("{light}{}", light.replace("--", "--print-"));
    let mut sheet = format!(
        ":root{{color-scheme:light;{light}}}\n\
         @media screen and (prefers-color-scheme:dark){{:root:not([data-theme=light]){{color-scheme:dark;{dark}}}}}\n\
         @media screen{{:root[data-theme=dark]{{color-scheme:dark;{dark}}}}}\n"
    );
    for (tone, ..) in tones() {
        let _ = writeln!(
            sheet,
            ".f-{tone}{{fill:var(--{tone})}}.l-{tone}{{stroke:var(--{tone})}}",
            tone = name(tone)
        );
    }
    sheet + SHEET
}

/// A class is `f-0`, its variable `--0`; no name of a class begins with a digit.
fn name(tone: Tone) -> String {
    tone.to_string()
}

fn variables(choose: fn(&'static str, &'static str) -> &'static str) -> String {
    tones()
        .into_iter()
        .map(|(tone, light, dark)| format!("--{tone}:{};", choose(light, dark)))
        .collect()
}

/// Surfaces that figures do not have.
const LIGHT: &str = "--soft:#f3f4f6;--link:#00527f;--warn:#fff3d6;--focus:#0072b2;";
const DARK: &str = "--soft:#1b222c;--link:#7cc7ee;--warn:#3b2f10;--focus:#56b4e9;";

#[cfg(test)]
mod tests {
    use super::*;

    /// WCAG 2.1, relative luminance and contrast ratio.
    fn contrast(a: &str, b: &str) -> f64 {
        let luminance = |color: &str| {
            let part = |at: usize| {
                let value = f64::from(u8::from_str_radix(&color[at..at + 2], 16).unwrap()) / 255.0;
                if value <= 0.03928 {
                    value / 12.92
                } else {
                    ((value + 0.055) / 1.055).powf(2.4)
                }
            };
            0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
        };
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    fn color(list: &str, name: &str) -> String {
        let begin =
            list.find(&format!("{name}:")).unwrap_or_else(|| panic!("no {name}")) + name.len() + 1;
        list[begin..begin + 7].to_owned()
    }

    /// AA: 4.5 for text, 3 for what a picture is made of.
    #[test]
    fn contrast_is_aa_in_light_and_dark() {
        let pages = [variables(|light, _| light) + LIGHT, variables(|_, dark| dark) + DARK];
        for page in pages {
            for surface in ["--paper", "--soft", "--warn"] {
                for text in ["--ink", "--dim", "--link"] {
                    let found = contrast(&color(&page, text), &color(&page, surface));
                    assert!(found >= 4.5, "{text} on {surface}: {found:.2} in {page}");
                }
            }
            for series in 0..6 {
                let found =
                    contrast(&color(&page, &format!("--{series}")), &color(&page, "--paper"));
                assert!(found >= 3.0, "series {series}: {found:.2} in {page}");
            }
            assert!(contrast(&color(&page, "--focus"), &color(&page, "--paper")) >= 3.0);
        }
    }
}
