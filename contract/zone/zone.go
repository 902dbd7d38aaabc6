// Package zone finds time zones by the names that people and models give them.
package zone

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // for machines without a zone database

	"github.com/switchboard-run/switchboard/contract/near"
)

//go:embed zones.txt
var zoneList string

var zoneNames = sync.OnceValue(func() []string { return strings.Fields(zoneList) })

var zones sync.Map // name -> *time.Location

// abbreviations are common names that the zone database lacks, or has without
// daylight saving time.
var abbreviations = map[string]string{
	"pst": "America/Los_Angeles", "pdt": "America/Los_Angeles", "mdt": "America/Denver",
	"cst": "America/Chicago", "cdt": "America/Chicago", "edt": "America/New_York",
	"bst": "Europe/London", "cest": "Europe/Berlin", "mez": "Europe/Berlin", "eest": "Europe/Helsinki",
	"msk": "Europe/Moscow", "ist": "Asia/Kolkata", "jst": "Asia/Tokyo", "kst": "Asia/Seoul",
	"aest": "Australia/Sydney", "aedt": "Australia/Sydney",
}

// Load returns the IANA zone with this exact name.
func Load(name string) (*time.Location, error) {
	if loc, ok := zones.Load(name); ok {
		return loc.(*time.Location), nil
	}
	if name == "" || name == "Local" {
		return nil, fmt.Errorf("%q is not an IANA time zone", name)
	}
	loc, err := time.LoadLocation(name)
	if err == nil {
		zones.Store(name, loc)
	}
	return loc, err
}

// Or returns the IANA zone with this exact name, or else another one.
func Or(name string, other *time.Location) *time.Location {
	if loc, err := Load(name); err == nil {
		return loc
	}
	return other
}

// Find returns the IANA zone with this name, ignoring case.
func Find(name string) (*time.Location, error) {
	name = strings.TrimSpace(name)
	for _, known := range zoneNames() {
		if strings.EqualFold(known, name) {
			return Load(known)
		}
	}
	return Load(name)
}

// Similar returns up to three similar zone names, the best first.
func Similar(name string) []string {
	want := strings.ToLower(strings.NewReplacer(" ", "_", "-", "_").Replace(strings.TrimSpace(name)))
	if zone, ok := abbreviations[want]; ok {
		return []string{zone}
	}
	if len(want) < 3 || len(want) > 64 {
		return nil
	}
	type match struct {
		name     string
		distance int
	}
	var matches []match
	for _, known := range zoneNames() {
		lower := strings.ToLower(known)
		city := lower[strings.LastIndexByte(lower, '/')+1:]
		wanted := want[strings.LastIndexByte(want, '/')+1:]
		distance := min(near.Distance(want, lower), 1+near.Distance(wanted, city))
		if limit := max(1, min(len(wanted), len(city))/4); distance <= 1+limit {
			matches = append(matches, match{known, distance})
		}
	}
	slices.SortStableFunc(matches, func(a, b match) int { return a.distance - b.distance })
	var names []string
	for _, m := range matches {
		if len(names) == 3 || m.distance > matches[0].distance+1 {
			break
		}
		names = append(names, m.name)
	}
	return names
}
