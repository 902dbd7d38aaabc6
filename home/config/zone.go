package config

import (
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Machine names the sources of a machine's time zone.
type Machine struct {
	Env       func(string) (string, bool) // such as os.LookupEnv
	Localtime string                      // /etc/localtime
	Name      string                      // /etc/timezone, which some systems have
}

// ThisMachine is the machine that the program runs on.
func ThisMachine() Machine {
	return Machine{Env: os.LookupEnv, Localtime: "/etc/localtime", Name: "/etc/timezone"}
}

// Zone returns the time zone in force and its IANA name: the configured one, else
// the machine's. If the name of the machine's zone is unknown, it is "Local".
func (c *Config) Zone(m Machine) (*time.Location, string) {
	name := c.Timezone
	if name == "" {
		name = m.zone()
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return time.Local, "Local"
	}
	return loc, name
}

// zone is the name of the machine's zone.
func (m Machine) zone() string {
	if tz, ok := m.Env("TZ"); ok {
		tz = strings.TrimPrefix(tz, ":")
		if tz == "" {
			return "UTC"
		}
		if _, name, ok := strings.Cut(tz, "zoneinfo/"); ok {
			tz = name
		}
		return tz
	}
	info, err := os.Lstat(m.Localtime)
	if err != nil {
		return "UTC"
	}
	if info.Mode()&os.ModeSymlink != 0 {
		if target, err := filepath.EvalSymlinks(m.Localtime); err == nil {
			if _, name, ok := strings.Cut(target, "zoneinfo/"); ok {
				return strings.TrimPrefix(name, "posix/")
			}
		}
		if target, err := os.Readlink(m.Localtime); err == nil {
			if _, name, ok := strings.Cut(target, "zoneinfo/"); ok {
				return name
			}
		}
	}
	if data, err := os.ReadFile(m.Name); err == nil {
		name := strings.TrimSpace(string(data))
		if _, err := time.LoadLocation(name); err == nil && name != "" {
			return name
		}
	}
	if data, err := os.ReadFile(m.Localtime); err == nil {
		if loc, err := time.LoadLocationFromTZData("", data); err == nil && plainUTC(loc) {
			return "UTC"
		}
	}
	return "Local"
}

// plainUTC reports whether a zone is UTC all year.
func plainUTC(loc *time.Location) bool {
	for month := time.January; month <= time.December; month++ {
		if _, offset := time.Date(2024, month, 1, 0, 0, 0, 0, loc).Zone(); offset != 0 {
			return false
		}
	}
	return true
}

// AccidentalUTC returns a hint if the zone is UTC only by default, as on many
// servers and in containers, where "at nine" means the wrong time for the user. It
// returns "" otherwise.
func (c *Config) AccidentalUTC(m Machine) string {
	if c.Timezone != "" {
		return ""
	}
	if _, ok := m.Env("TZ"); ok {
		return ""
	}
	if _, err := os.Stat(m.Localtime); err != nil {
		return "the time zone is UTC because TZ is not set and " + m.Localtime +
			" is missing; set timezone in config.yaml"
	}
	name := m.zone()
	switch name[strings.LastIndexByte(name, '/')+1:] {
	case "UTC", "UCT", "Universal", "Zulu", "GMT", "GMT0", "Greenwich":
		return "the machine's time zone is " + name + "; if that isn't yours, set timezone in config.yaml (UTC, to keep it)"
	}
	return ""
}
