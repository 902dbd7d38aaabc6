package schedule

import (
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract/words"
	zones "github.com/switchboard-run/switchboard/contract/zone"
)

// LoadZone returns the IANA zone with this exact name.
func LoadZone(name string) (*time.Location, error) {
	loc, err := zones.Load(name)
	return loc, badZone(name, err)
}

// FindZone returns the IANA zone with this name, ignoring case.
func FindZone(name string) (*time.Location, error) {
	name = strings.TrimSpace(name)
	loc, err := zones.Find(name)
	return loc, badZone(name, err)
}

// badZone says what is wrong with the name of a zone.
func badZone(name string, err error) error {
	if err == nil {
		return nil
	}
	if name == "" || name == "Local" {
		return words.Errorf("timezone %q is not an IANA zone: use a name such as Europe/Berlin", name)
	}
	if similar := zones.Similar(name); len(similar) > 0 {
		return words.Errorf("timezone %q is unknown: did you mean %s?", name, strings.Join(similar, " or "))
	}
	return words.Errorf("timezone %q is unknown: use an IANA zone such as Europe/Berlin, America/New_York or UTC, "+
		"or give at with an offset, such as 2026-03-01T09:00:00+03:00", name)
}
