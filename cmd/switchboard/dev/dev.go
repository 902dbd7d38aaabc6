// Package dev is what `extensions dev` is made of: a home of its own in which a kernel
// runs one extension from the directory where its author writes it (Home), its build at
// each change (Build, Files), what it commits and what is refused (Observe), and an
// extension that plays the world around it (Bench).
//
// Nothing of the author's own installation is read or changed.
package dev

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/switchboard-run/switchboard/manifests"
)

// Home prepares a home for the extension of a directory and returns its path. The home is
// in the user's cache, one for each directory, and keeps its events. Its config.yaml is
// written when it is missing, and the author's to change from then on. program is the path
// of this program, which the kernel starts with BenchCommand.
func Home(m *manifests.Manifest, dir, program string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a place for the home to try it in: %w; set XDG_CACHE_HOME", err)
	}
	sum := sha256.Sum256([]byte(dir))
	home := filepath.Join(cache, "switchboard", "dev", m.ID+"-"+hex.EncodeToString(sum[:4]))
	bench := filepath.Join(home, "extensions", BenchID)
	if err := os.MkdirAll(bench, 0o700); err != nil {
		return "", err
	}
	link := filepath.Join(home, "extensions", m.ID)
	if at, err := os.Readlink(link); err != nil || at != dir {
		if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		if err := os.Symlink(dir, link); err != nil {
			return "", err
		}
	}
	manifest, err := benchManifest(m, program)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(bench, manifests.FileName), manifest, 0o600); err != nil {
		return "", err
	}
	config := filepath.Join(home, "config.yaml")
	if _, err := os.Stat(config); errors.Is(err, fs.ErrNotExist) {
		return home, os.WriteFile(config, []byte(settings(m)), 0o600)
	}
	return home, nil
}

// settings are those of a new home: nothing is asked, everyone is admitted, and nothing
// happens by itself.
func settings(m *manifests.Manifest) string {
	channel, agent := BenchID, "echo"
	if m.Provides.Channel != nil {
		channel = m.ID
	}
	if m.Agent != nil {
		agent = m.ID
	}
	enabled := "echo"
	if agent != enabled {
		enabled += ", " + agent
	}
	text := fmt.Sprintf("# The settings with which `switchboard extensions dev` runs %[1]s. They are yours to change.\n"+
		"agents: {default: %[2]s, enabled: [%[3]s]}\n"+
		"channels:\n  default: %[4]s\n  %[4]s: {allow_from: [\"*\"]}\n", m.ID, agent, enabled, channel)
	if channel != BenchID {
		text += "  " + BenchID + ": {allow_from: [\"*\"]}\n"
	}
	return text + fmt.Sprintf("extensions:\n  %s: {allow: true}\n  %s: {allow: true}\n  heartbeat: {enabled: false}\n"+
		"backup: {nightly: false}\n", m.ID, BenchID)
}

// benchManifest lets the bench publish what the extension subscribes to.
func benchManifest(m *manifests.Manifest, program string) ([]byte, error) {
	topics := []string{"user.message"}
	for _, s := range m.Permissions.Subscribe {
		if s.Topic != "user.message" && !strings.HasPrefix(s.Topic, "channel.send.") {
			topics = append(topics, s.Topic)
		}
	}
	return json.MarshalIndent(map[string]any{ // JSON is YAML
		"api": 1, "id": BenchID, "name": "Bench", "version": "1.0.0",
		"description": "Plays the world around an extension that is being written.",
		"run":         map[string]any{"command": program, "args": []string{BenchCommand}},
		"provides":    map[string]any{"channel": map[string]any{"formats": []string{"text"}}, "tools": true},
		"permissions": map[string]any{"publish": topics},
	}, "", "  ")
}
