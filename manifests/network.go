package manifests

import (
	"math"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// variable is the prefix of a destination taken from the environment.
const variable = "$env."

// anyHost is the destination that allows all.
const anyHost = "*"

// defaultPort is the port of a destination without one.
const defaultPort = 443

// Destinations returns the ports of permissions.network, with references resolved: the
// values of $config.<key> and $env.<NAME> are addresses, such as URLs, or missing; those of
// $config.<key> may be ports, too, and lists, and * in the key stands for every key. With
// anyPort every port is allowed.
func (m *Manifest) Destinations(config map[string]any, env func(string) (string, bool)) (ports []uint16, anyPort bool) {
	for _, d := range m.Permissions.Network {
		values := []any{d}
		if name, ok := strings.CutPrefix(d, variable); ok {
			d, _ = env(name)
			values[0] = d
		} else if path, ok := parseReference(d); ok {
			values = nil
			for _, value := range lookupAll(config, path) {
				if list, is := value.([]any); is {
					values = append(values, list...)
				} else {
					values = append(values, value)
				}
			}
		}
		for _, value := range values {
			if value == anyHost {
				return nil, true
			}
			if port := portOf(value); port != 0 && !slices.Contains(ports, port) {
				ports = append(ports, port)
			}
		}
	}
	return ports, false
}

// Ports returns the ports that the extension may listen on, with the reference of
// permissions.listen_on resolved: the port of an address, or a port. Port 0 of an address
// is one that the system chooses.
func (m *Manifest) Ports(config map[string]any) (ports []uint16) {
	for _, port := range m.Permissions.Listen {
		ports = append(ports, uint16(port))
	}
	switch value := m.Configured(m.Permissions.ListenOn, config).(type) {
	case int, int64:
		if port := portOf(value); port != 0 {
			ports = append(ports, port)
		}
	case string:
		if _, port, err := net.SplitHostPort(value); err == nil {
			if n, err := strconv.ParseUint(port, 10, 16); err == nil {
				ports = append(ports, uint16(n))
			}
		}
	}
	return ports
}

// Configured returns a value, or what it refers to in the config if it is $config.<key>;
// nil: there is nothing.
func (m *Manifest) Configured(value string, config map[string]any) any {
	if path, ok := parseReference(value); ok {
		return lookup(config, path)
	}
	return value
}

// portOf returns the port of an address, or of a number in the configuration.
func portOf(value any) uint16 {
	switch value := value.(type) {
	case string:
		return PortOf(value)
	case int:
		return portOf(int64(value))
	case int64: // of a manifest
		if value > 0 && value <= math.MaxUint16 {
			return uint16(value)
		}
	}
	return 0
}

// PortOf returns the port of a URL or host:port, by default that of HTTPS. It is 0 if the
// text is not an address.
func PortOf(address string) uint16 {
	if address == "" {
		return 0
	}
	port := ""
	if strings.Contains(address, "://") {
		u, err := url.Parse(address)
		if err != nil || u.Host == "" {
			return 0
		}
		if port = u.Port(); port == "" {
			port = map[string]string{"http": "80", "ws": "80", "socks5": "1080", "socks5h": "1080"}[u.Scheme]
		}
	} else if _, p, err := net.SplitHostPort(address); err == nil {
		port = p
	}
	if port == "" {
		return defaultPort
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return 0
	}
	return uint16(n)
}
