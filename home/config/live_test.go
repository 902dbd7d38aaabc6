package config_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/home/config"
)

func TestLive(t *testing.T) {
	t.Parallel()
	home, err := config.OpenHomeAt(filepath.Join(t.TempDir(), "home"))
	if err != nil {
		t.Fatal(err)
	}
	live := config.Open(home, func(string) (string, bool) { return "", false })
	if c, s := live.Errors(); c != nil || s != nil || live.Config().Channels.Hold != 15*time.Minute {
		t.Fatalf("without files: %v, %v, %+v", c, s, live.Config())
	}
	ctx, cancel := context.WithCancel(context.Background())
	changes := make(chan config.Change, 10)
	done := make(chan struct{})
	go func() {
		defer close(done)
		live.Watch(ctx, func(c config.Change) { changes <- c })
	}()
	t.Cleanup(func() { cancel(); <-done })
	put := func(path, text string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(path+"~", []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+"~", path); err != nil {
			t.Fatal(err)
		}
	}
	onlyConfig, onlySecrets := config.Change{Config: true}, config.Change{Secrets: true}
	expect := func(want config.Change) {
		t.Helper()
		if got := <-changes; got != want {
			t.Fatalf("change %+v, want %+v", got, want)
		}
	}

	put(home.Config(), "channels: {hold: 1m}\n", 0o644)
	expect(onlyConfig)
	if live.Config().Channels.Hold != time.Minute {
		t.Fatalf("hold: %v", live.Config().Channels.Hold)
	}
	put(home.Config(), "channels: {hold: soon}\n", 0o644)
	expect(onlyConfig)
	if err, _ := live.Errors(); live.Config().Channels.Hold != time.Minute || err == nil ||
		!strings.Contains(err.Error(), home.Config()+":1:18: channels.hold: ") {
		t.Fatalf("after a bad edit: %v, %v", live.Config().Channels.Hold, err)
	}
	put(home.Secrets(), "TOKEN=1\n", 0o600)
	expect(onlySecrets)
	old := live.Secrets()
	if v, ok := old.Lookup("TOKEN"); v != "1" || !ok {
		t.Fatalf("secret: %q", v)
	}
	put(home.Secrets(), "TOKEN=2\n", 0o600)
	expect(onlySecrets)
	if v, _ := live.Secrets().Lookup("TOKEN"); v != "2" {
		t.Fatalf("secret: %q", v)
	}
	if err := os.Chmod(home.Secrets(), 0o644); err != nil {
		t.Fatal(err)
	}
	expect(onlySecrets)
	if v, _ := live.Secrets().Lookup("TOKEN"); v != "2" {
		t.Fatalf("secret after a bad mode: %q", v)
	}
	if _, err := live.Errors(); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Fatalf("bad mode: %v", err)
	}
	if err := os.Remove(home.Config()); err != nil {
		t.Fatal(err)
	}
	expect(onlyConfig)
	if err, _ := live.Errors(); err != nil || live.Config().Channels.Hold != 15*time.Minute {
		t.Fatalf("after removal: %v, %v", err, live.Config().Channels.Hold)
	}
}
