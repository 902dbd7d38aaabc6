// Package netguard makes HTTP connections to addresses that a model, a web page or a
// stranger chose. It refuses those that only this machine or its network can reach.
//
// The address of every connection is checked when it is dialed, after its name was
// resolved: a name that resolves to another address the next time gains nothing, and
// neither does a redirect. The package knows no proxies: a proxy resolves names itself, so
// its addresses cannot be checked.
//
// Refused are, unless allowed: other schemes than http and https; credentials in a URL;
// other ports than 80 and 443; addresses that are not public. These are all that IANA
// reserves (private, loopback, link-local with the metadata services of clouds,
// carrier-grade NAT, multicast, documentation, benchmarks), and the IPv6 forms that contain
// an IPv4 address (mapped, compatible, NAT64, 6to4, Teredo).
package netguard

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Refusal is the error of an address that may not be reached.
type Refusal struct {
	Reason string
	// Setting means that Options could allow the address.
	Setting bool
}

func (r *Refusal) Error() string { return r.Reason }

func refuse(format string, args ...any) error { return &Refusal{Reason: fmt.Sprintf(format, args...)} }

// refuseUnset is refuse for what Options could allow.
func refuseUnset(format string, args ...any) error {
	return &Refusal{Reason: fmt.Sprintf(format, args...), Setting: true}
}

// Options say what may be reached besides public addresses on ports 80 and 443.
type Options struct {
	// Allow has hosts, IP addresses and networks, such as nas.home, 192.168.1.7:8080 or
	// 10.0.0.0/8. One with a port allows this port only; one without the usual ports.
	Allow []string
	// Ports may be used with every host that is allowed.
	Ports []uint16
	// Resolver resolves names; nil: the system's.
	Resolver *net.Resolver
}

// Guard makes the connections. It is safe for concurrent use.
type Guard struct {
	allowed []target
	ports   []uint16
	dialer  net.Dialer
}

const (
	dialTimeout      = 10 * time.Second
	handshakeTimeout = 10 * time.Second
	maxHeader        = 128 << 10
)

// New returns a guard. An error names the entry of Allow that is wrong.
func New(o Options) (*Guard, error) {
	g := &Guard{ports: append([]uint16{80, 443}, o.Ports...),
		dialer: net.Dialer{Timeout: dialTimeout, Resolver: o.Resolver}}
	for _, entry := range o.Allow {
		t, err := parseTarget(entry)
		if err != nil {
			return nil, err
		}
		g.allowed = append(g.allowed, t)
	}
	return g, nil
}

// Transport returns a transport that makes a connection for each request.
func (g *Guard) Transport() *http.Transport {
	return &http.Transport{
		DialContext: g.DialContext, DisableKeepAlives: true, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: handshakeTimeout, MaxResponseHeaderBytes: maxHeader,
	}
}

// CheckURL returns a *Refusal for a URL that is refused whatever its name resolves to.
func (g *Guard) CheckURL(u *url.URL) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return refuse("%q is not a web address: it has to begin with http:// or https://", cut(u.Redacted()))
	case u.User != nil:
		return refuse("the address contains a user name or a password: leave them out")
	case u.Hostname() == "":
		return refuse("the address names no host")
	}
	port, err := portOf(u)
	if err != nil {
		return err
	}
	host := hostOf(u.Hostname())
	ip, isIP, err := parseHost(host)
	switch {
	case err != nil:
		return err
	case isIP:
		return g.check(host, netip.AddrPortFrom(ip, port))
	case !slices.Contains(g.ports, port) && !slices.ContainsFunc(g.allowed, func(t target) bool { return t.port == port }):
		return refusePort(port)
	}
	return nil
}

// DialContext connects to an address if the guard allows the one that it resolves to.
func (g *Guard) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	host = hostOf(host)
	if _, _, err := parseHost(host); err != nil {
		return nil, err
	}
	d := g.dialer
	d.ControlContext = func(_ context.Context, _, dialed string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(dialed)
		if err != nil {
			return refuse("the address %s cannot be checked", dialed)
		}
		return g.check(host, to)
	}
	return d.DialContext(ctx, network, address)
}

// check returns a *Refusal unless the address of a host may be reached.
func (g *Guard) check(host string, to netip.AddrPort) error {
	ip, usual := to.Addr(), slices.Contains(g.ports, to.Port())
	reachable := Public(ip)
	for _, t := range g.allowed {
		if !t.covers(host, ip) {
			continue
		}
		if reachable = true; t.port == to.Port() || t.port == 0 && usual {
			return nil
		}
	}
	_, literal, _ := parseHost(host)
	switch {
	case !reachable && literal:
		return refuseUnset("%s is not a public address", host)
	case !reachable:
		return refuseUnset("%s has the address %s, which is not a public one", host, ip)
	case !Public(ip) || !usual:
		return refusePort(to.Port())
	}
	return nil
}

func refusePort(port uint16) error { return refuseUnset("port %d is not one that may be used", port) }

// target is an entry of Options.Allow.
type target struct {
	name string       // of a host; empty: network is set
	net  netip.Prefix // of an address, its own
	port uint16       // 0: the usual ones
}

func parseTarget(entry string) (t target, err error) {
	host := entry
	if h, p, err := net.SplitHostPort(entry); err == nil {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil || n == 0 {
			return t, fmt.Errorf("%q has no valid port", entry)
		}
		host, t.port = h, uint16(n)
	}
	host = hostOf(strings.Trim(host, "[]"))
	if t.net, err = netip.ParsePrefix(host); err == nil {
		t.net = t.net.Masked()
		return t, nil
	}
	ip, isIP, err := parseHost(host)
	if isIP && err == nil {
		t.net = netip.PrefixFrom(ip, ip.BitLen())
		return t, nil
	}
	if err != nil || host == "" || strings.ContainsAny(host, "/:*@ %") {
		return t, fmt.Errorf("%q is not a host, an IP address or a network: write nas.home, 192.168.1.7:8080 or 10.0.0.0/8",
			entry)
	}
	t.name = host
	return t, nil
}

// covers reports whether an entry is for an address of a host. A name does not cover
// link-local addresses, among them the metadata services of clouds, nor what is no address
// of one host.
func (t target) covers(host string, ip netip.Addr) bool {
	if t.name == "" {
		return t.net.Contains(ip.WithZone(""))
	}
	ip = ip.Unmap()
	return t.name == host && !ip.IsLinkLocalUnicast() && !ip.IsMulticast() && !ip.IsUnspecified() &&
		ip != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

// hostOf returns a host in the form in which hosts are compared.
func hostOf(name string) string { return strings.TrimSuffix(strings.ToLower(name), ".") }

// parseHost returns the IP address that a host is. The spellings of IPv4 addresses that
// only some resolvers know (2130706433, 0x7f.1, 0177.0.0.1, 127.1) are refused.
func parseHost(host string) (ip netip.Addr, isIP bool, err error) {
	if ip, err = netip.ParseAddr(host); err == nil {
		if ip.Zone() != "" {
			return ip, true, refuse("the address has a zone (%s): leave it out", ip.Zone())
		}
		return ip, true, nil
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	number := strings.TrimPrefix(last, "0x")
	digits := "0123456789"
	if number != last {
		digits += "abcdef"
	}
	if last != "" && strings.Trim(number, digits) == "" {
		return netip.Addr{}, false, refuse("write the IP address as four decimal numbers, such as 192.0.2.1")
	}
	return netip.Addr{}, false, nil
}

func portOf(u *url.URL) (uint16, error) {
	switch u.Port() {
	case "":
		if u.Scheme == "http" {
			return 80, nil
		}
		return 443, nil
	default:
		n, err := strconv.ParseUint(u.Port(), 10, 16)
		if err != nil || n == 0 {
			return 0, refuse("%q is not a port", u.Port())
		}
		return uint16(n), nil
	}
}

// cut bounds what a refusal repeats.
func cut(s string) string {
	if len(s) > 200 {
		return strings.ToValidUTF8(s[:200], "") + "..."
	}
	return s
}
