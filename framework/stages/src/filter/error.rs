//! What is wrong with an expression, and where.

use core::fmt;

/// An expression that is none.
///
/// Shown with the line it is in and marks below the place:
///
/// ```
/// # use ringwright_stages::Filter;
/// let error = Filter::new("ipv4 and tcp.prt == 80").unwrap_err();
/// assert_eq!(error.to_string(), "column 10: tcp.prt is no field; did you mean tcp.port?
///   ipv4 and tcp.prt == 80
///            ^^^^^^^");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterError {
    problem: String,
    /// The line of the expression, what cannot be shown replaced.
    text: String,
    line: usize,
    lines: usize,
    column: usize,
    width: usize,
}

impl FilterError {
    /// `problem` with bytes `start..end` of `expression`.
    pub(super) fn new(expression: &str, start: usize, end: usize, problem: impl Into<String>) -> Self {
        let start = expression.floor_char_boundary(start);
        let (before, after) = expression.split_at(start);
        let begin = before.rfind('\n').map_or(0, |n| n + 1);
        let rest = after.find('\n').map_or(expression.len(), |n| start + n);
        let shown = |c: char| if c.is_control() { ' ' } else { c };
        let place = &expression[start..expression.floor_char_boundary(end).clamp(start, rest)];
        Self {
            problem: problem.into(),
            text: expression[begin..rest].trim_end().chars().map(shown).collect(),
            line: before.matches('\n').count() + 1,
            lines: expression.trim_end().lines().count(),
            column: expression[begin..start].chars().count() + 1,
            width: place.chars().count().max(1),
        }
    }
    /// What is wrong, and what would be right.
    pub fn problem(&self) -> &str {
        &self.problem
    }
    /// The line, from 1.
    pub const fn line(&self) -> usize {
        self.line
    }
    /// The column in that line, in characters, from 1.
    pub const fn column(&self) -> usize {
        self.column
    }
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.lines > 1 {
            write!(f, "line {}, ", self.line)?;
        }
        writeln!(f, "column {}: {}", self.column, self.problem)?;
        writeln!(f, "  {}", self.text)?;
        write!(f, "  {:blank$}{}", "", "^".repeat(self.width), blank = self.column - 1)
    }
}

impl core::error::Error for FilterError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_shown_in_its_line() {
        let text = "arp\n or\ttcß.x\nor udp";
        let at = text.find("tc").unwrap();
        let e = FilterError::new(text, at, at + "tcß.x".len(), "is wrong");
        assert_eq!((e.line(), e.column()), (2, 5));
        assert_eq!(e.to_string(), "line 2, column 5: is wrong\n   or tcß.x\n      ^^^^^");
        let e = FilterError::new("arp and", 7, 7, "more");
        assert_eq!(e.to_string(), "column 8: more\n  arp and\n         ^");
        // Offsets inside a character and beyond the end are no reason to panic.
        FilterError::new("ß", 1, 9, "");
        FilterError::new("", 5, 9, "");
    }
}
