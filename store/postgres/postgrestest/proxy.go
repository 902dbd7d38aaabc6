package postgrestest

import (
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
)

// Proxy passes TCP connections on to a server. It can swallow answers and cut
// connections.
type Proxy struct {
	listener net.Listener
	target   string

	mu      sync.Mutex
	clients map[net.Conn]bool
	servers map[net.Conn]bool
	down    bool
	refused int // connections, while down
	filter  func(toServer bool, b []byte) (pass bool)
	hold    func(toServer bool, b []byte) bool
	held    chan<- []byte
	late    <-chan struct{}
	waiting sync.WaitGroup // what was held and has not reached the server's end
}

// NewProxy starts a proxy to a server.
func NewProxy(t T, s *Server) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: l, target: s.Socket(), clients: map[net.Conn]bool{}, servers: map[net.Conn]bool{}}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { p.serve(client) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		p.Cut()
		serving.Wait()
	})
	return p
}

// Lead leads new connections to another server.
func (p *Proxy) Lead(s *Server) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = s.Socket()
}

// DSN leads a connection string through the proxy.
func (p *Proxy) DSN(dsn string) string {
	_, rest, _ := strings.Cut(dsn, " ")
	port := p.listener.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // it is TCP
	return "host=127.0.0.1 port=" + strconv.Itoa(port) + " " + rest
}

// Filter sets a function that sees what passes in each direction. It is called by many
// goroutines; what it does not pass is swallowed.
func (p *Proxy) Filter(f func(toServer bool, b []byte) (pass bool)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.filter = f
}

// Hold holds back what hold picks first, reports it on held, and passes it on when late is
// closed, also if the client has gone meanwhile.
func (p *Proxy) Hold(hold func(toServer bool, b []byte) bool, held chan<- []byte, late <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hold, p.held, p.late = hold, held, late
}

// Cut closes all connections.
func (p *Proxy) Cut() {
	p.CutClients()
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.servers {
		_ = c.Close()
	}
}

// CutClients closes the connections to clients. One to the server on which something is
// held stays.
func (p *Proxy) CutClients() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.clients {
		_ = c.Close()
	}
}

// AwaitServers waits until the server has answered what was held.
func (p *Proxy) AwaitServers() { p.waiting.Wait() }

// Down cuts all connections and refuses new ones until Down(false).
func (p *Proxy) Down(down bool) {
	p.mu.Lock()
	p.down = down
	p.mu.Unlock()
	if down {
		p.Cut()
	}
}

// Refused counts the connections that it has refused.
func (p *Proxy) Refused() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused
}

func (p *Proxy) serve(client net.Conn) {
	defer client.Close()
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	server, err := net.Dial("unix", target)
	if err != nil {
		return
	}
	defer server.Close()
	p.mu.Lock()
	if p.down {
		p.refused++
		p.mu.Unlock()
		return
	}
	p.clients[client], p.servers[server] = true, true
	p.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { p.pass(client, server, true) })
	both.Go(func() { p.pass(server, client, false) })
	both.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.clients, client)
	delete(p.servers, server)
}

func (p *Proxy) pass(from, to net.Conn, toServer bool) {
	defer to.Close()
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		if n > 0 && !p.one(to, toServer, b[:n]) {
			return
		}
		if err != nil {
			return
		}
	}
}

// one passes on what was read, and reports whether the connection goes on.
func (p *Proxy) one(to net.Conn, toServer bool, b []byte) bool {
	p.mu.Lock()
	f, hold, held, late := p.filter, p.hold, p.held, p.late
	if hold != nil && hold(toServer, b) {
		p.hold = nil
		p.waiting.Add(1)
		p.mu.Unlock()
		defer p.waiting.Done()
		held <- b
		<-late
		if _, err := to.Write(b); err != nil {
			return false
		}
		if half, ok := to.(*net.UnixConn); ok { // the server reads all, answers, and ends
			_ = half.CloseWrite()
			_, _ = io.Copy(io.Discard, to)
		}
		return false
	}
	p.mu.Unlock()
	if f != nil && !f(toServer, b) {
		return true
	}
	_, err := to.Write(b)
	return err == nil
}
