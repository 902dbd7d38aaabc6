package config

import (
	"os"
	"path/filepath"
	"testing"
	_ "time/tzdata"
)

func TestZone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	place := func(name string) string { return filepath.Join(dir, name) }
	for name, target := range map[string]string{
		"berlin": "/usr/share/zoneinfo/Europe/Berlin", "utc": "/usr/share/zoneinfo/Etc/UTC",
		"macos": "/var/db/timezone/zoneinfo/Asia/Tokyo",
	} {
		if err := os.Symlink(target, place(name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(place("copy"), []byte("not a zone"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(place("name"), []byte("America/New_York\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for title, tc := range map[string]struct {
		configured, tz, localtime, name, want string
	}{
		"configured":      {configured: "Europe/Paris", tz: "Asia/Tokyo", want: "Europe/Paris"},
		"configured UTC":  {configured: "UTC", localtime: "none", want: "UTC"},
		"TZ":              {tz: ":Asia/Tokyo", localtime: "berlin", want: "Asia/Tokyo"},
		"TZ as a path":    {tz: "/usr/share/zoneinfo/Asia/Tokyo", localtime: "berlin", want: "Asia/Tokyo"},
		"TZ says UTC":     {tz: "UTC", localtime: "berlin", want: "UTC"},
		"TZ unknown":      {tz: "CET-1CEST", localtime: "berlin", want: "Local"},
		"localtime":       {localtime: "berlin", want: "Europe/Berlin"},
		"on macOS":        {localtime: "macos", want: "Asia/Tokyo"},
		"a copied file":   {localtime: "copy", name: "name", want: "America/New_York"},
		"a nameless file": {localtime: "copy", name: "none", want: "Local"},
		"nothing":         {localtime: "none", want: "UTC"},
		"UTC by default":  {localtime: "utc", want: "Etc/UTC"},
	} {
		m := Machine{Env: env(), Localtime: place(tc.localtime), Name: place(tc.name)}
		if tc.tz != "" {
			m.Env = env("TZ", tc.tz)
		}
		c := &Config{Timezone: tc.configured}
		loc, got := c.Zone(m)
		if got != tc.want || loc == nil {
			t.Errorf("%s: %s, %v", title, got, loc)
		}
	}
}

func TestAccidentalUTC(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	zones := filepath.Join(dir, "zoneinfo", "Etc")
	if err := os.MkdirAll(zones, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(zones, "UTC"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	berlin := filepath.Join(dir, "berlin")
	if err := os.MkdirAll(filepath.Join(dir, "zoneinfo", "Europe"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "zoneinfo", "Europe", "Berlin"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "zoneinfo", "Europe", "Berlin"), berlin); err != nil {
		t.Fatal(err)
	}
	if hint := (&Config{}).AccidentalUTC(Machine{Env: env(), Localtime: berlin}); hint != "" {
		t.Errorf("in Berlin, and hint: %q", hint)
	}
	link := filepath.Join(dir, "localtime")
	if err := os.Symlink(filepath.Join(zones, "UTC"), link); err != nil {
		t.Fatal(err)
	}
	m := Machine{Env: env(), Localtime: link}
	if hint := (&Config{}).AccidentalUTC(m); hint != "the machine's time zone is Etc/UTC; if that isn't yours, set "+
		"timezone in config.yaml (UTC, to keep it)" {
		t.Errorf("hint: %q", hint)
	}
	if hint := (&Config{Timezone: "UTC"}).AccidentalUTC(m); hint != "" {
		t.Errorf("configured, and hint: %q", hint)
	}
	if hint := (&Config{}).AccidentalUTC(Machine{Env: env(), Localtime: link + "_"}); hint != "the time zone is UTC "+
		"because TZ is not set and "+link+"_ is missing; set timezone in config.yaml" {
		t.Errorf("hint: %q", hint)
	}
	m.Env = env("TZ", "UTC")
	if hint := (&Config{}).AccidentalUTC(m); hint != "" {
		t.Errorf("in the environment, and hint: %q", hint)
	}
}
