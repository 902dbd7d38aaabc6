package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/switchboard-run/switchboard/sdk/netguard"
)

// What one server may send.
const (
	maxMessage  = 16 << 20 // one answer, or one event of a stream
	maxMinute   = 64 << 20 // of one stream, in a minute
	maxMetadata = 1 << 20  // one answer of an authorization server

	dialTimeout     = 10 * time.Second
	metadataTimeout = 30 * time.Second
)

var (
	errTooMuch  = errors.New("the server sends too much")
	errRedirect = errors.New("the server redirects to another address, which is refused")
)

// reach is what a host name in a configured address means.
type reach int

const (
	public   reach = iota // any name that is none of the others
	private               // an address of a local network
	loopback              // this machine
)

// reachOf returns the reach of the host in an address that the owner wrote.
func reachOf(host string) reach {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return loopback
	}
	ip, err := netip.ParseAddr(host)
	switch {
	case err != nil:
		return public
	case ip.Unmap().IsLoopback():
		return loopback
	case isPrivate(ip.Unmap()):
		return private
	}
	return public
}

// carrierGrade is shared by the customers of a provider.
var carrierGrade = netip.MustParsePrefix("100.64.0.0/10")

func isPrivate(ip netip.Addr) bool { return ip.IsPrivate() || carrierGrade.Contains(ip) }

// check refuses an address that a name of the reach must not lead to.
func (r reach) check(address string, lan bool) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("read the address %s: %w", address, err)
	}
	ip := at.Addr().Unmap()
	switch {
	case ip.IsLoopback():
		if r == loopback {
			return nil
		}
	case isPrivate(ip):
		if r == private || lan {
			return nil
		}
	case netguard.Public(ip):
		return nil
	}
	return fmt.Errorf("the host leads to %s, which is refused", ip)
}

// dialer connects to addresses that the check allows. They are checked after names are
// resolved, when the connection is made.
func dialer(check func(address string) error) func(context.Context, string, string) (net.Conn, error) {
	d := &net.Dialer{Timeout: dialTimeout, Control: func(_, address string, _ syscall.RawConn) error {
		return check(address)
	}}
	return d.DialContext
}

// origin is the scheme, host and port of an address.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return strings.ToLower(u.Scheme + "://" + u.Hostname() + ":" + port)
}

// serverClient makes the requests to the server itself, with the headers of the
// configuration, which go nowhere else.
func serverClient(own *url.URL, headers map[string]string, ended context.Context) *http.Client {
	of := reachOf(own.Hostname())
	return &http.Client{
		Transport: &bounded{
			ended: ended, own: origin(own), headers: headers,
			next: &http.Transport{
				DialContext: dialer(func(a string) error { return of.check(a, true) }), TLSHandshakeTimeout: dialTimeout,
				MaxIdleConns: 4, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true,
			},
		},
		CheckRedirect: func(q *http.Request, before []*http.Request) error {
			if len(before) >= 5 || origin(q.URL) != origin(own) || q.Method != before[0].Method {
				return errRedirect
			}
			return nil
		},
	}
}

// bounded adds the configured headers, ends with the link, and limits what is received.
type bounded struct {
	next    *http.Transport
	ended   context.Context //nolint:containedctx // of the link
	own     string
	headers map[string]string
}

func (b *bounded) RoundTrip(q *http.Request) (*http.Response, error) {
	if origin(q.URL) != b.own {
		return nil, errRedirect
	}
	ctx, cancel := context.WithCancel(q.Context())
	stop := context.AfterFunc(b.ended, cancel)
	end := func() {
		stop()
		cancel()
	}
	q = q.Clone(ctx)
	for name, value := range b.headers {
		q.Header.Set(name, value)
	}
	resp, err := b.next.RoundTrip(q)
	if err != nil {
		end()
		return nil, err
	}
	stream := strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")
	resp.Body = &flow{ReadCloser: resp.Body, stream: stream, end: end, now: time.Now}
	return resp, nil
}

// flow is the body of an answer.
type flow struct {
	io.ReadCloser
	stream bool
	end    func()
	now    func() time.Time

	mu    sync.Mutex
	since time.Time
	bytes int
}

func (f *flow) Read(p []byte) (int, error) {
	n, err := f.ReadCloser.Read(p)
	f.mu.Lock()
	defer f.mu.Unlock()
	most := maxMessage
	if f.stream {
		if most = maxMinute; f.now().Sub(f.since) > time.Minute {
			f.since, f.bytes = f.now(), 0
		}
	}
	if f.bytes += n; f.bytes > most {
		return 0, errTooMuch
	}
	return n, err
}

func (f *flow) Close() error {
	defer f.end()
	return f.ReadCloser.Close()
}

// metadataClient makes the requests to addresses that a server names: metadata,
// registration, tokens. They are https, follow no redirects, and lead to no private address
// unless the configured server is at one of the same kind.
func metadataClient(own *url.URL) *http.Client {
	of := reachOf(own.Hostname())
	return &http.Client{
		Timeout: metadataTimeout,
		Transport: secure{of: of, next: &http.Transport{
			DialContext: dialer(func(a string) error { return of.check(a, false) }), TLSHandshakeTimeout: dialTimeout,
			DisableKeepAlives: true, ForceAttemptHTTP2: true,
		}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return errRedirect },
	}
}

type secure struct {
	of   reach
	next *http.Transport
}

func (s secure) RoundTrip(q *http.Request) (*http.Response, error) {
	if err := s.of.secure(q.URL); err != nil {
		return nil, err
	}
	resp, err := s.next.RoundTrip(q)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxMetadata), resp.Body}
	}
	return resp, err
}

// secure refuses an address that is neither https nor, for a server of this machine, on it.
func (r reach) secure(u *url.URL) error {
	if u.Scheme == "https" || u.Scheme == "http" && r == loopback && reachOf(u.Hostname()) == loopback {
		return nil
	}
	return fmt.Errorf("the server names the address %s, which is not https", u.Redacted())
}
