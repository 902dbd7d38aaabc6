package webchannel

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/webchannel/hooks"
)

// Config is the extension's configuration.
type Config struct {
	Listen string `json:"listen"` // host:port
	URL    string `json:"url"`    // as people reach it; empty: that of Listen
	Proxy  bool   `json:"proxy"`  // a proxy that speaks TLS is in front
	TLS    *TLS   `json:"tls"`    // nil: none
	hooks.Config
}

// TLS names the files of a certificate.
type TLS struct {
	Cert string `json:"cert"`
	Key  string `json:"key"`
}

// check refuses an address that others could read along on.
func (c *Config) check() error {
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return fmt.Errorf("%w: extensions.%s.config.listen: %w", contract.ErrInvalid, ID, err)
	}
	if c.Proxy && !strings.HasPrefix(c.URL, "https://") {
		return fmt.Errorf("%w: extensions.%s.config.proxy needs url, the https address of the proxy", contract.ErrInvalid, ID)
	}
	if isLoopback(host) || c.TLS != nil || c.Proxy {
		return nil
	}
	return fmt.Errorf("%w: extensions.%s.config.listen: %s can be reached from other machines, and without TLS others "+
		"could read along: set tls to a certificate, or proxy and url if a reverse proxy with TLS is in front",
		contract.ErrInvalid, ID, c.Listen)
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}

// secure reports whether browsers speak TLS.
func (c *Config) secure() bool { return c.TLS != nil || c.Proxy }

// address is the URL of the page as people reach it, without a slash at its end. The
// listener's own address counts, because its port may be chosen by the system.
func (c *Config) address(listening net.Addr) string {
	if c.URL != "" {
		return strings.TrimSuffix(c.URL, "/")
	}
	host, _, _ := net.SplitHostPort(c.Listen)
	_, port, _ := net.SplitHostPort(listening.String())
	if host == "" || host == "0.0.0.0" || host == "::" {
		host = "localhost"
	}
	scheme := "http"
	if c.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}

// hosts are the values of the header Host under which the page answers: a foreign name that
// resolves to this machine gets nothing.
func (c *Config) hosts(listening net.Addr) (all []string) {
	_, port, _ := net.SplitHostPort(listening.String())
	if u, err := url.Parse(c.URL); err == nil && u.Host != "" {
		all = append(all, u.Host)
	}
	host, _, _ := net.SplitHostPort(c.Listen)
	for _, name := range []string{host, "localhost", "127.0.0.1", "::1"} {
		if name != "" {
			all = append(all, net.JoinHostPort(name, port))
		}
	}
	return all
}
