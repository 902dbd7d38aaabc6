// Package link connects the nodes of a cluster with each other, so that the command line
// of each node reaches the owner of a cell.
//
// # Promises
//
// A node talks only to nodes that have the key of the cluster, and to the one that it
// means: TLS 1.3 in both directions, with certificates that each node issues to itself
// from the key. The addresses of nodes come from elsewhere (PostgreSQL) and need not be
// right: a wrong one leads to no node, and nothing that is secret is sent there.
//
// Relay lets the programs of this user on this machine, and no others, connect to the
// owner of a cell, as they connect to a kernel of their own. It gives them the owner's
// tokens as files that only this user can read. A connection that can't go on ends; it
// is never continued with another owner.
package link

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/net/netutil"
)

const (
	dialTime   = 3 * time.Second
	beatEvery  = time.Second     // between two messages of a watch
	silentTime = 4 * time.Second // without a message: the other node is gone
	// maxConns bounds the connections to a node, those that did not authenticate included.
	maxConns = 512
	root     = "/switchboard/1/cells/"
)

// Port is something that the owner of a cell serves on its machine and others relay.
type Port struct {
	Name string
	// Network and Address are those of package net, unix or tcp. The same for each node,
	// but for the directory.
	Network, Address string
	// Token is the file with the token that clients show; empty: they need none.
	Token string
	// Spare is a port that a relay does without if its address is taken.
	Spare bool
}

// Options configure a Link.
type Options struct {
	Key  *Key
	Node string // the name of this one
	// Listen is host:port; empty: no node can reach this one. Port 0 takes a free one.
	Listen string
	Log    hclog.Logger
}

// Link is this node's end of its connections to others. It is safe for concurrent use.
type Link struct {
	options Options
	tls     *tls.Config
	server  *http.Server
	address string

	mu    sync.Mutex
	cells map[string]*owned
}

// owned is a cell that this node owns.
type owned struct {
	ports map[string]Port
	files http.Handler    // takes edits of shared files; nil: none are shared
	over  context.Context // ends with the ownership
}

// Open makes the link of a node, and listens for the others.
func Open(o Options) (*Link, error) {
	l := &Link{options: o, cells: map[string]*owned{}}
	var err error
	if l.tls, err = o.Key.certificates(o.Node); err != nil {
		return nil, err
	}
	if o.Listen == "" {
		return l, nil
	}
	listener, err := net.Listen("tcp", o.Listen) //nolint:noctx // making a socket does not wait
	if err != nil {
		return nil, fmt.Errorf("listen for the other nodes on %s (listen in cluster.yaml): %w", o.Listen, err)
	}
	host, _, _ := net.SplitHostPort(o.Listen)
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	l.address = net.JoinHostPort(host, port)
	l.server = &http.Server{
		Handler: l.routes(), ReadHeaderTimeout: dialTime, IdleTimeout: dialTime, MaxHeaderBytes: 16 << 10,
		ErrorLog: log.New(refusals{o.Log}, "", 0),
	}
	go func() { _ = l.server.Serve(tls.NewListener(netutil.LimitListener(listener, maxConns), l.tls)) }()
	return l, nil
}

// Address is where the other nodes reach this one; empty: they don't.
func (l *Link) Address() string { return l.address }

// refusals logs connections that did not authenticate.
type refusals struct{ log hclog.Logger }

func (r refusals) Write(p []byte) (int, error) {
	r.log.Warn("a connection to this node was refused", "reason", strings.TrimSpace(string(p)))
	return len(p), nil
}

// Close ends the connections of other nodes.
func (l *Link) Close() {
	l.mu.Lock()
	l.cells = map[string]*owned{}
	l.mu.Unlock()
	if l.server != nil {
		_ = l.server.Close()
	}
}

// Serve lets the other nodes reach the ports of a cell, which this node owns until stop
// is called. Their edits of shared files go to files.
func (l *Link) Serve(cell string, ports []Port, files http.Handler) (stop func()) {
	over, end := context.WithCancel(context.Background())
	c := &owned{ports: map[string]Port{}, files: files, over: over}
	for _, p := range ports {
		c.ports[p.Name] = p
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cells[cell] = c
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		end()
		if l.cells[cell] == c {
			delete(l.cells, cell)
		}
	}
}

func (l *Link) routes() http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("GET "+root+"{cell}/tokens", l.owner(l.tokens))
	m.HandleFunc("POST "+root+"{cell}/ports/{port}", l.owner(l.port))
	m.HandleFunc("PUT "+root+"{cell}/files", l.owner(func(w http.ResponseWriter, r *http.Request, c *owned) {
		if c.files == nil {
			http.Error(w, fmt.Sprintf("the node %s does not share its files", l.options.Node), http.StatusNotFound)
			return
		}
		c.files.ServeHTTP(w, r)
	}))
	return m
}

// owner lets only requests about cells of this node through.
func (l *Link) owner(serve func(http.ResponseWriter, *http.Request, *owned)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		l.mu.Lock()
		c := l.cells[r.PathValue("cell")]
		l.mu.Unlock()
		if c == nil {
			http.Error(w, fmt.Sprintf("the node %s does not own the cell %s", l.options.Node, r.PathValue("cell")),
				http.StatusMisdirectedRequest)
			return
		}
		serve(w, r, c)
	}
}

// tokens sends the tokens of all ports, as one JSON object a line, again and again for as
// long as this node owns the cell.
func (l *Link) tokens(w http.ResponseWriter, r *http.Request, c *owned) {
	answer := http.NewResponseController(w)
	for ticks := time.Tick(beatEvery); ; {
		all := map[string]string{}
		for name, p := range c.ports {
			if p.Token == "" {
				continue
			}
			if text, err := os.ReadFile(p.Token); err == nil {
				all[name] = strings.TrimSpace(string(text))
			}
		}
		if err := errors.Join(json.NewEncoder(w).Encode(all), answer.Flush()); err != nil {
			return
		}
		select {
		case <-ticks:
		case <-c.over.Done():
			return
		case <-r.Context().Done():
			return
		}
	}
}

// port connects the caller with a port.
func (l *Link) port(w http.ResponseWriter, r *http.Request, c *owned) {
	p, known := c.ports[r.PathValue("port")]
	if !known {
		http.NotFound(w, r)
		return
	}
	dialer := net.Dialer{Timeout: dialTime}
	to, err := dialer.DialContext(r.Context(), p.Network, p.Address)
	if err != nil {
		http.Error(w, fmt.Sprintf("the node %s does not serve %s now: %v", l.options.Node, p.Name, err),
			http.StatusBadGateway)
		return
	}
	defer to.Close()
	from, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer from.Close()
	_ = from.SetDeadline(time.Time{})
	_, err = io.WriteString(from, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: stream\r\n\r\n")
	if err == nil {
		join(c.over, to, readWriter{buffered, from})
	}
}

// readWriter reads what was buffered before the rest.
type readWriter struct {
	io.Reader
	net.Conn
}

// Read implements io.Reader.
func (r readWriter) Read(p []byte) (int, error) { return r.Reader.Read(p) }

// join copies both ways until one side ends, or ctx does, and closes both.
func join(ctx context.Context, a, b io.ReadWriteCloser) {
	both := sync.OnceFunc(func() { _, _ = a.Close(), b.Close() })
	defer context.AfterFunc(ctx, both)()
	var copying sync.WaitGroup
	for _, pair := range [][2]io.ReadWriteCloser{{a, b}, {b, a}} {
		copying.Go(func() {
			_, _ = io.Copy(pair[0], pair[1])
			both()
		})
	}
	copying.Wait()
}

// client makes requests to one node at an address.
func (l *Link) client(node, address string) *http.Client {
	config := l.tls.Clone()
	config.ServerName = hostOf(node)
	dialer := net.Dialer{Timeout: dialTime, KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: 3 * time.Second, Interval: time.Second, Count: 3,
	}}
	return &http.Client{
		Transport: &http.Transport{
			DisableKeepAlives: true, TLSClientConfig: config, TLSHandshakeTimeout: dialTime,
			ResponseHeaderTimeout: 2 * dialTime,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return dialer.DialContext(ctx, "tcp", address)
			},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Refused is an answer of another node with a status that was not wanted.
type Refused struct {
	Status int
	Reason string
}

// Error implements error.
func (r *Refused) Error() string { return fmt.Sprintf("%s (status %d)", r.Reason, r.Status) }

// do makes a request about a cell. Any other status than the wanted one is a *Refused.
func do(ctx context.Context, c *http.Client, method, cell, path string, body io.Reader, wanted int,
) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, "https://node"+root+cell+path, body)
	if err != nil {
		return nil, err
	}
	if wanted == http.StatusSwitchingProtocols {
		r.Header.Set("Connection", "Upgrade")
		r.Header.Set("Upgrade", "stream")
	}
	answer, err := c.Do(r)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != wanted {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 8<<10))
		_ = answer.Body.Close()
		return nil, &Refused{answer.StatusCode, strings.TrimSpace(string(text))}
	}
	return answer, nil
}
