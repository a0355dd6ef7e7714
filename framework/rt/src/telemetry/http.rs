//! Connections, requests and answers.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::Limits;
use super::metrics::Format;
use super::view::Window;
use crate::control::SharedHost;
use crate::control::seats::{Seat, Seats};

/// The page that says what is here.
const INDEX: &str = include_str!("index.html");
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";
/// Most bytes of a request's head, and most headers.
const HEAD_BYTES: usize = 16 << 10;
const HEADERS: usize = 64;
/// What a connection whose time is over gets to finish an answer.
const LAST_WORDS: Duration = Duration::from_millis(500);
const TRY_AGAIN: Duration = Duration::from_millis(100);

pub(super) struct Server {
    window: Window,
    limits: Limits,
    /// Clients may call us by any name.
    any_name: bool,
    seats: Arc<Seats>,
    stopped: watch::Receiver<bool>,
}

impl Server {
    pub fn new(host: SharedHost, limits: Limits, any_name: bool, stopped: watch::Receiver<bool>) -> Self {
        let window = Window::new(host, limits.host);
        Self { window, limits, any_name, seats: Seats::new(limits.connections), stopped }
    }

    pub fn run(self: Arc<Self>, runtime: Runtime, listener: StdListener) {
        if let Err(e) = runtime.block_on(self.accept(listener)) {
            tracing::error!("metrics: {e}; they are no longer served");
        }
        runtime.shutdown_timeout(Duration::from_millis(100));
    }

    async fn accept(self: &Arc<Self>, listener: StdListener) -> std::io::Result<()> {
        let listener = TcpListener::from_std(listener)?;
        let mut stopped = self.stopped.clone();
        let keeper = Arc::clone(self);
        tokio::spawn(async move { keeper.window.keep().await });
        loop {
            let stream = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = stopped.wait_for(|s| *s) => break,
            };
            match stream {
                // Nobody is ever busy here, so there is always a seat.
                Ok((stream, _)) => {
                    if let Some(seat) = self.seats.take() {
                        tokio::spawn(Arc::clone(self).serve(stream, seat));
                    }
                }
                Err(e) => {
                    tracing::warn!("metrics: no client can connect: {e}");
                    sleep(TRY_AGAIN).await;
                }
            }
        }
        drop(listener);
        let gone = async {
            while !self.seats.is_empty() {
                sleep(Duration::from_millis(2)).await;
            }
        };
        let _ = timeout(2 * LAST_WORDS, gone).await;
        Ok(())
    }

    async fn serve(self: Arc<Self>, stream: TcpStream, seat: Seat) {
        let seat = &seat;
        let service = service_fn(|request| {
            seat.heard(false);
            let server = &self;
            async move { Ok::<_, Infallible>(server.answer(&request).await) }
        });
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(self.limits.head)
            .max_buf_size(HEAD_BYTES)
            .max_headers(HEADERS);
        let connection = http.serve_connection(TokioIo::new(stream), service);
        let mut connection = std::pin::pin!(connection);
        let mut stopped = self.stopped.clone();
        tokio::select! {
            // Whatever a client does wrong is answered by the library, and is nobody else's concern.
            _ = connection.as_mut() => return,
            () = seat.told_to_leave() => return,
            () = sleep(self.limits.life) => {}
            _ = stopped.wait_for(|s| *s) => {}
        }
        connection.as_mut().graceful_shutdown();
        let _ = timeout(LAST_WORDS, connection).await;
    }

    async fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        if !self.any_name && !is_local_name(request.headers()) {
            let why =
                "this name is not known here: use the address, localhost, or set telemetry.allow_remote\n";
            return plain(StatusCode::MISDIRECTED_REQUEST, why);
        }
        let path = request.uri().path();
        if !["/", "/metrics", "/api/v1/status", "/healthz"].contains(&path) {
            return plain(StatusCode::NOT_FOUND, "not here; there are /metrics /api/v1/status /healthz /\n");
        }
        if ![Method::GET, Method::HEAD].contains(request.method()) {
            let mut refused = plain(StatusCode::METHOD_NOT_ALLOWED, "GET and HEAD only\n");
            refused.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
            return refused;
        }
        if path == "/" {
            return page();
        }
        let Some(view) = self.window.view().await else {
            let why = "the instance is busy with a change, or hangs: see its log\n";
            return plain(StatusCode::SERVICE_UNAVAILABLE, why);
        };
        match path {
            "/healthz" => plain(StatusCode::OK, "ok\n"),
            "/metrics" => {
                let format = wanted(request.headers());
                let kind = if format == Format::OpenMetrics { OPENMETRICS } else { TEXT };
                let mut answer = with(StatusCode::OK, kind, view.metrics(format));
                answer.headers_mut().insert(header::VARY, HeaderValue::from_static("accept"));
                answer
            }
            _ => with(StatusCode::OK, "application/json", view.status()),
        }
    }
}

/// OpenMetrics for whoever knows it or takes anything, Prometheus' text for the others: a browser shows it.
fn wanted(headers: &HeaderMap) -> Format {
    let all: Vec<_> = headers.get_all(header::ACCEPT).iter().filter_map(|v| v.to_str().ok()).collect();
    let kinds = || all.iter().flat_map(|v| v.split(',')).map(|k| k.split(';').next().unwrap_or("").trim());
    let openmetrics = kinds().any(|k| k.eq_ignore_ascii_case("application/openmetrics-text"));
    let text = kinds().any(|k| k.starts_with("text/"));
    if openmetrics || !text { Format::OpenMetrics } else { Format::Text }
}

/// Whether the client means this machine: a page elsewhere whose name was made to lead here (DNS rebinding) does not.
fn is_local_name(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(header::HOST) else { return true };
    let Ok(host) = host.to_str() else { return false };
    let name = host
        .rsplit_once(':')
        .map_or(host, |(name, port)| if port.bytes().all(|b| b.is_ascii_digit()) { name } else { host });
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok()
        || host.parse::<SocketAddr>().is_ok()
}

fn plain(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    with(status, PLAIN, Bytes::from_static(text.as_bytes()))
}

fn page() -> Response<Full<Bytes>> {
    let mut page = with(StatusCode::OK, "text/html; charset=utf-8", Bytes::from_static(INDEX.as_bytes()));
    let policy = HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'");
    page.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    page
}

fn with(status: StatusCode, kind: &'static str, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: header::HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_str(value).unwrap())])
    }

    #[test]
    fn formats_go_by_what_the_client_accepts() {
        let of = |accept: &str| wanted(&headers(header::ACCEPT, accept));
        let prometheus =
            "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1";
        let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
        assert_eq!([prometheus, "*/*", "application/json"].map(of), [Format::OpenMetrics; 3]);
        assert_eq!([browser, "text/plain", "text/plain;version=0.0.4"].map(of), [Format::Text; 3]);
        assert_eq!(wanted(&HeaderMap::new()), Format::OpenMetrics);
    }

    #[test]
    fn names_of_elsewhere_are_not_ours() {
        let local = |host: &str| is_local_name(&headers(header::HOST, host));
        for own in ["127.0.0.1:9464", "localhost", "LOCALHOST:80", "[::1]:9464", "[::1]", "10.0.0.1"] {
            assert!(local(own), "{own}");
        }
        for other in ["evil.example", "evil.example:9464", "127.0.0.1.evil.example", "", "localhost.evil:1"] {
            assert!(!local(other), "{other}");
        }
        assert!(is_local_name(&HeaderMap::new()));
    }
}
