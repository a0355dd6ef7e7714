//! What is logged, and how: on stderr, as text for people or as JSON for programs, changed while it runs.

use std::fmt;
use std::io::{self, IsTerminal};
use std::str::FromStr;

use clap::{Args, ValueEnum};
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::level_filters::{LevelFilter, STATIC_MAX_LEVEL};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::{JsonFields, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, reload};

use crate::speaker::Voice;

/// How lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Level, spans, message: for people.
    Text,
    /// One JSON object a line, also for what is no event of the log: for programs.
    Json,
}

/// The command's options of the log.
#[derive(Args, Debug)]
pub struct LogArgs {
    /// What is logged on stderr: off, error, warn, info, debug; or by target: warn,ringwright_rt=info.
    #[arg(long, global = true, value_name = "LEVEL", default_value = "warn", env = "RINGWRIGHT_LOG")]
    pub log: Filter,
    /// How it is logged.
    #[arg(
        long,
        global = true,
        value_name = "FORMAT",
        default_value = "text",
        env = "RINGWRIGHT_LOG_FORMAT",
        value_enum
    )]
    pub log_format: Format,
}

/// Levels: one for everything, others for some targets.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    text: String,
    targets: Targets,
    /// The most talkative of all levels.
    most: LevelFilter,
}

fn level(s: &str) -> Result<LevelFilter, String> {
    // Trace is not for users: nothing of ours has that level.
    let levels =
        [LevelFilter::OFF, LevelFilter::ERROR, LevelFilter::WARN, LevelFilter::INFO, LevelFilter::DEBUG];
    let found = levels.into_iter().find(|l| l.to_string() == s.trim().to_ascii_lowercase());
    let level = found.ok_or("use off, error, warn, info or debug; or by target: warn,ringwright_rt=info")?;
    if level > STATIC_MAX_LEVEL {
        return Err(format!("{level} is not compiled in; the most is {STATIC_MAX_LEVEL}"));
    }
    Ok(level)
}

impl FromStr for Filter {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        let (mut targets, mut most, mut texts) = (Targets::new(), LevelFilter::OFF, Vec::new());
        for part in s.split(',') {
            let (target, name) = part.split_once('=').map_or((None, part), |(t, l)| (Some(t.trim()), l));
            let level = level(name)?;
            most = most.max(level);
            (targets, _) = match target {
                Some(t) => (targets.with_target(t, level), texts.push(format!("{t}={level}"))),
                None => (targets.with_default(level), texts.push(level.to_string())),
            };
        }
        Ok(Self { text: texts.join(","), targets, most })
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Filter {
    /// Spans say where an event belongs, so they are there whatever the level of events.
    fn passes(&self, m: &Metadata<'_>) -> bool {
        if m.is_span() {
            self.most > LevelFilter::OFF
        } else {
            self.targets.would_enable(m.target(), m.level())
        }
    }
}

impl<S: Subscriber> Layer<S> for Filter {
    fn register_callsite(&self, m: &'static Metadata<'static>) -> Interest {
        if self.passes(m) { Interest::always() } else { Interest::never() }
    }
    fn enabled(&self, m: &Metadata<'_>, _: Context<'_, S>) -> bool {
        self.passes(m)
    }
    fn max_level_hint(&self) -> Option<LevelFilter> {
        let spans = if self.most > LevelFilter::OFF { LevelFilter::INFO } else { LevelFilter::OFF };
        Some(self.most.max(spans))
    }
}

/// The log, once it has begun.
#[derive(Clone)]
pub struct Log(reload::Handle<Filter, Registry>);

impl Log {
    /// Begins: what is logged from now on goes to `voice`.
    pub fn start(args: &LogArgs, voice: &Voice) -> Self {
        let colours = std::io::stderr().is_terminal();
        let voice = voice.clone();
        let (subscriber, log) = subscriber(args, move || voice.clone(), colours);
        // There is one log for each process, and this is it.
        let _ = subscriber.try_init();
        log
    }

    /// From now on logs what `filter` says; returns what is in force.
    ///
    /// # Errors
    /// What would be right.
    pub fn set(&self, filter: &str) -> Result<String, String> {
        let filter: Filter = filter.parse()?;
        let text = filter.to_string();
        self.0.reload(filter).map_err(|e| e.to_string())?;
        Ok(text)
    }
}

fn subscriber<W: io::Write + 'static>(
    args: &LogArgs,
    writer: impl Fn() -> W + Send + Sync + 'static,
    colours: bool,
) -> (impl Subscriber + Send + Sync + for<'a> LookupSpan<'a> + 'static, Log) {
    let (filter, handle) = reload::Layer::new(args.log.clone());
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(writer)
        // Whatever is wrong with stderr is no reason to panic, which telling stderr about it would be.
        .log_internal_errors(false);
    let lines = match args.log_format {
        Format::Text => lines.with_ansi(colours).without_time().with_target(false).boxed(),
        Format::Json => lines.with_ansi(false).fmt_fields(JsonFields::new()).event_format(JsonLines).boxed(),
    };
    (tracing_subscriber::registry().with(filter).with(lines), Log(handle))
}

/// One object a line: `time`, `level`, `target`, `message`, the event's other `fields`, and the fields of each of its
/// `spans` by the span's name.
struct JsonLines;

impl<S, N> FormatEvent<S, N> for JsonLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let mut spans = Map::new();
        for span in context.event_scope().into_iter().flat_map(|s| s.from_root()) {
            let extensions = span.extensions();
            let written = extensions.get::<FormattedFields<N>>();
            let read = written.and_then(|w| serde_json::from_str(w.as_str()).ok());
            spans.insert(span.name().to_owned(), read.unwrap_or_else(|| Value::Object(Map::new())));
        }
        let mut line = begin(event.metadata().level().as_str());
        line.insert("target".to_owned(), event.metadata().target().into());
        line.insert("message".to_owned(), fields.0.remove("message").unwrap_or_default());
        for (key, object) in [("fields", fields.0), ("spans", spans)] {
            if !object.is_empty() {
                line.insert(key.to_owned(), object.into());
            }
        }
        writeln!(writer, "{}", Value::Object(line))
    }
}

/// What every object has.
fn begin(level: &str) -> Map<String, Value> {
    let now = humantime::format_rfc3339_millis(std::time::SystemTime::now());
    let all = [("time", now.to_string()), ("level", level.to_ascii_lowercase())];
    all.into_iter().map(|(k, v)| (k.to_owned(), v.into())).collect()
}

/// What the command says about its run, as an object and a line.
pub fn object(message: &impl fmt::Display) -> String {
    let mut line = begin("info");
    line.insert("target".to_owned(), "ringwright".into());
    line.insert("message".to_owned(), message.to_string().into());
    format!("{}\n", Value::Object(line))
}

/// An event's fields, each as near to its type as JSON has it.
#[derive(Default)]
struct Fields(Map<String, Value>);

impl Fields {
    fn put(&mut self, field: &Field, value: impl Into<Value>) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}"));
    }
    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value);
    }
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value);
    }
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value);
    }
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value);
    }
    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value);
    }
}

#[cfg(test)]
mod tests;
