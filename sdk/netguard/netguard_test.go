package netguard

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

func guard(t *testing.T, o Options) *Guard {
	t.Helper()
	g, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func refused(err error) bool {
	var r *Refusal
	return errors.As(err, &r)
}

func TestWhatIsPublic(t *testing.T) {
	t.Parallel()
	for _, ip := range []string{"8.8.8.8", "1.1.1.1", "172.32.0.1", "100.128.0.1", "223.255.255.255", "2606:4700::1111",
		"2a00:1450:4001::200e"} {
		if !Public(netip.MustParseAddr(ip)) {
			t.Errorf("%s is not public", ip)
		}
	}
	for _, ip := range []string{
		"0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.0.1", "169.254.169.254",
		"172.16.0.1", "172.31.255.255", "192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.0.1", "198.18.0.1",
		"198.51.100.7", "203.0.113.7", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255",
		"::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "64:ff9b::7f00:1", "64:ff9b:1::a00:1", "100::1",
		"2001::1", "2001:db8::1", "2002:7f00:1::1", "2002:a00:1::", "3fff::1", "5f00::1", "fc00::1", "fd00:ec2::254",
		"fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "2a00::1%eth0",
	} {
		if Public(netip.MustParseAddr(ip)) {
			t.Errorf("%s is public", ip)
		}
	}
}

func TestURLs(t *testing.T) {
	t.Parallel()
	g := guard(t, Options{Ports: []uint16{8443}, Allow: []string{"nas.home:8080", "10.1.0.0/16", "[fd00::7]:81", "Router."}})
	for raw, want := range map[string]string{
		"http://example.org":                  "",
		"https://example.org:8443/":           "",
		"HTTP://example.org:80/":              "",
		"http://nas.home:8080/":               "",
		"http://10.1.2.3/":                    "",
		"http://10.1.2.3:8443/":               "",
		"http://[fd00::7]:81/":                "",
		"https://8.8.8.8/":                    "",
		"file:///etc/passwd":                  "not a web address",
		"gopher://example.org/":               "not a web address",
		"javascript:alert(1)":                 "not a web address",
		"//example.org/":                      "not a web address",
		"http://anna:secret@example.org/":     "a user name or a password",
		"http:///x":                           "names no host",
		"http://example.org:22/":              "port 22",
		"http://example.org:8081/":            "port 8081",
		"http://example.org:0/":               "is not a port",
		"http://example.org:99999/":           "is not a port",
		"http://10.1.2.3:22/":                 "port 22",
		"http://10.2.0.1/":                    "not a public address",
		"http://[fd00::7]/":                   "port 80",
		"http://[::1]/":                       "not a public address",
		"http://[::ffff:127.0.0.1]/":          "not a public address",
		"http://[::ffff:7f00:1]/":             "not a public address",
		"http://[64:ff9b::7f00:1]/":           "not a public address",
		"http://[2002:7f00:1::]/":             "not a public address",
		"http://[fe80::1%25eth0]/":            "zone",
		"http://127.0.0.1/":                   "not a public address",
		"http://127.0.0.1./":                  "not a public address",
		"http://169.254.169.254/latest/":      "not a public address",
		"http://0.0.0.0/":                     "not a public address",
		"http://2130706433/":                  "four decimal numbers",
		"http://0x7f000001/":                  "four decimal numbers",
		"http://0177.0.0.1/":                  "four decimal numbers",
		"http://0x7f.0.0.1/":                  "four decimal numbers",
		"http://127.1/":                       "four decimal numbers",
		"http://0X7F.0x0.0x1/":                "four decimal numbers",
		"http://127.0.0.256/":                 "four decimal numbers",
		"ftp://anna:" + "hunter2@example.org": "not a web address",
	} {
		u, err := url.Parse(raw)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		err = g.CheckURL(u)
		switch {
		case want == "" && err != nil, want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %q", raw, err, want)
		case err != nil && !refused(err):
			t.Errorf("%s: %v is no Refusal", raw, err)
		case err != nil && (strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "hunter2")):
			t.Errorf("%s: the error repeats the password: %v", raw, err)
		}
	}
}

func TestWhatANameAllows(t *testing.T) {
	t.Parallel()
	g := guard(t, Options{Allow: []string{"nas.home", "wiki.home:8080", "169.254.7.0/24"}})
	for _, tt := range []struct {
		host, to string
		want     bool
	}{
		{"nas.home", "192.168.1.7:80", true},
		{"nas.home", "127.0.0.1:443", true},
		{"nas.home", "192.168.1.7:8080", false},
		{"nas.home", "169.254.169.254:80", false}, // a name is not enough for link-local addresses
		{"nas.home", "[fe80::1]:80", false},
		{"nas.home", "0.0.0.0:80", false},
		{"nas.home", "224.0.0.1:80", false},
		{"nas.home", "255.255.255.255:80", false},
		{"wiki.home", "10.0.0.1:8080", true},
		{"wiki.home", "10.0.0.1:80", false},
		{"other.home", "192.168.1.7:80", false},
		{"sub.nas.home", "192.168.1.7:80", false},
		{"any", "169.254.7.1:80", true},
		{"any", "[::ffff:169.254.7.1]:80", false},
	} {
		if err := g.check(tt.host, netip.MustParseAddrPort(tt.to)); (err == nil) != tt.want {
			t.Errorf("%s at %s: %v", tt.host, tt.to, err)
		}
	}
}

func TestBadEntries(t *testing.T) {
	t.Parallel()
	for _, entry := range []string{"", "http://nas.home", "10.0.0.0/99", "nas.home:0", "nas.home:99999", "*", "*.home",
		"127.1", "a b", "fe80::1%eth0", "anna@nas.home", "nas.home/path"} {
		if _, err := New(Options{Allow: []string{entry}}); err == nil || entry != "" && !strings.Contains(err.Error(), entry) {
			t.Errorf("%q: %v", entry, err)
		}
	}
}

// names is a resolver of a test: each look-up of a name takes its next address, and the last
// one stays.
type names struct {
	mu      sync.Mutex
	all     map[string][]string
	lookups map[string]int
}

func (n *names) resolver(t *testing.T) *net.Resolver {
	t.Helper()
	n.lookups = map[string]int{}
	pc, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	t.Cleanup(func() { _ = pc.Close(); <-served })
	go func() {
		defer close(served)
		buffer := make([]byte, 1500)
		for {
			size, from, err := pc.ReadFrom(buffer)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buffer[:size]) != nil || len(m.Questions) != 1 {
				continue
			}
			n.answer(&m)
			if reply, err := m.Pack(); err == nil {
				_, _ = pc.WriteTo(reply, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", pc.LocalAddr().String())
	}}
}

func (n *names) answer(m *dnsmessage.Message) {
	n.mu.Lock()
	defer n.mu.Unlock()
	q := m.Questions[0]
	name := strings.TrimSuffix(q.Name.String(), ".")
	m.Response, m.Authoritative, m.Additionals = true, true, nil
	known := n.all[name]
	if len(known) == 0 {
		m.RCode = dnsmessage.RCodeNameError
		return
	}
	ip := netip.MustParseAddr(known[min(n.lookups[name], len(known)-1)])
	header := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}
	switch {
	case q.Type == dnsmessage.TypeA && ip.Is4():
		n.lookups[name]++
		m.Answers = []dnsmessage.Resource{{Header: header, Body: &dnsmessage.AResource{A: ip.As4()}}}
	case q.Type == dnsmessage.TypeAAAA && ip.Is6():
		n.lookups[name]++
		m.Answers = []dnsmessage.Resource{{Header: header, Body: &dnsmessage.AAAAResource{AAAA: ip.As16()}}}
	}
}

// serve serves on an address of loopback, on a free port.
func serve(t *testing.T, address string, h http.Handler) *httptest.Server {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Skipf("no server on %s: %v", address, err)
	}
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: h}} //nolint:gosec // in a test
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func get(t *testing.T, g *Guard, address string) (string, error) {
	t.Helper()
	client := &http.Client{Transport: g.Transport(), CheckRedirect: func(req *http.Request, _ []*http.Request) error {
		return g.CheckURL(req.URL)
	}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

// A name resolves to an address that may be used, and to one of loopback the next time.
// 127.0.0.2 plays the address that may be used. No form of 127.0.0.1 is reached, neither directly
// nor by a redirect.
func TestRebindingGainsNothing(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("127.0.0.2 is an address of loopback on Linux only")
	}
	hits := make(chan string, 100)
	secret := serve(t, "127.0.0.1", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { hits <- r.Host }))
	_, port, _ := net.SplitHostPort(secret.Listener.Addr().String())
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.2:"+port)
	if err != nil {
		t.Skip(err)
	}
	open := &httptest.Server{Listener: l, Config: &http.Server{ //nolint:gosec // in a test
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if to := r.FormValue("to"); to != "" {
				http.Redirect(w, r, to, http.StatusFound)
				return
			}
			_, _ = io.WriteString(w, "page")
		})}}
	open.Start()
	t.Cleanup(open.Close)

	n := &names{all: map[string][]string{
		"rebind.test": {"127.0.0.2", "127.0.0.1"}, "site.test": {"127.0.0.2"}, "loop.test": {"127.0.0.1"},
		"meta.test": {"169.254.169.254"}, "mapped.test": {"::ffff:127.0.0.1"}, "six.test": {"::1"},
		"nat.test": {"64:ff9b::7f00:1"}, "any.test": {"0.0.0.0"},
	}}
	g := guard(t, Options{Allow: []string{"127.0.0.2"}, Ports: []uint16{uint16(number)}, Resolver: n.resolver(t)})
	if g.Transport().Proxy != nil {
		t.Error("a proxy is used, which resolves names itself")
	}
	for _, address := range []string{"http://rebind.test:", "http://site.test:", "http://127.0.0.2:",
		"http://site.test:" + port + "/?to=http://site.test:"} {
		if body, err := get(t, g, address+port); err != nil || body != "page" {
			t.Fatalf("%s: %q, %v", address, body, err)
		}
	}
	for _, host := range []string{"rebind.test", "loop.test", "meta.test", "mapped.test", "six.test", "nat.test", "any.test",
		"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "2130706433", "0x7f.1", "127.1", "①②⑦.0.0.1", "0"} {
		address := "http://" + host + ":" + port + "/"
		if body, err := get(t, g, address); !refused(err) {
			t.Errorf("%s: %q, %v", address, body, err)
		}
		if body, err := get(t, g, "http://site.test:"+port+"/?to="+url.QueryEscape(address)); !refused(err) {
			t.Errorf("a redirect to %s: %q, %v", address, body, err)
		}
	}
	if _, err := get(t, g, "http://nosuch.test:"+port); err == nil || refused(err) {
		t.Errorf("a name that does not exist: %v", err)
	}
	select {
	case host := <-hits:
		t.Errorf("the server on loopback got a request for %s", host)
	default:
	}
}
