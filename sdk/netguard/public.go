package netguard

import "net/netip"

// global is the part of IPv6 that is used on the internet.
var global = netip.PrefixFrom(netip.AddrFrom16([16]byte{0x20}), 3)

// reserved has what is not on the internet, besides what netip knows:
// https://www.iana.org/assignments/iana-ipv4-special-registry and iana-ipv6-special-registry.
var reserved = []netip.Prefix{
	v4(0, 0, 0, 8),        // this network
	v4(100, 64, 0, 10),    // carrier-grade NAT
	v4(192, 0, 0, 24),     // protocol assignments
	v4(192, 0, 2, 24),     // documentation
	v4(192, 88, 99, 24),   // 6to4 relays
	v4(198, 18, 0, 15),    // benchmarks
	v4(198, 51, 100, 24),  // documentation
	v4(203, 0, 113, 24),   // documentation
	v4(224, 0, 0, 4),      // multicast
	v4(240, 0, 0, 4),      // reserved, broadcast
	v6(0x2001, 0, 23),     // protocol assignments, Teredo among them
	v6(0x2001, 0xdb8, 32), // documentation
	v6(0x2002, 0, 16),     // 6to4
	v6(0x3fff, 0, 20),     // documentation
}

func v4(a, b, c byte, bits int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{a, b, c}), bits)
}

func v6(first, second uint16, bits int) netip.Prefix {
	ip := [16]byte{byte(first >> 8), byte(first), byte(second >> 8), byte(second)}
	return netip.PrefixFrom(netip.AddrFrom16(ip), bits)
}

// Public reports whether an address is one of the internet. All that is IPv6 but not below
// 2000::/3 is not: ::1, mapped and compatible IPv4, NAT64, unique local, link-local.
func Public(ip netip.Addr) bool {
	if !ip.IsValid() || ip.Zone() != "" || ip.IsPrivate() || ip.IsLoopback() || ip.IsLinkLocalUnicast() ||
		ip.IsMulticast() || ip.IsUnspecified() || ip.Is6() && !global.Contains(ip) {
		return false
	}
	for _, r := range reserved {
		if r.Contains(ip) {
			return false
		}
	}
	return true
}
