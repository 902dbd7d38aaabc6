package ledger

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/switchboard-run/switchboard/home/consent/consenttest"
)

const manifests = `api: 1
id: keeper
name: Keeper
version: 1.0.0
agent:
  model: default
  instructions: You keep the shop.
  uses_tools: [core/*, shop/*, scheduler/*]
restart: {backoff: 20ms, max_backoff: 20ms, max: 1000}
---
api: 1
id: shop
name: Shop
version: 1.0.0
run: {command: %q, args: [%s]}
provides: {tools: true, channel: {max_length: 0}}
restart: {backoff: 20ms, max_backoff: 20ms, max: 1000}
`

// Furnish writes the files of a home that does the main job: an agent, the shop, which is
// this program with an argument, and a configuration, whose people write in a channel.
func Furnish(dir, channel, config, argument string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for m := range strings.SplitSeq(fmt.Sprintf(manifests, self, argument), "---\n") {
		if err := Install(dir, m); err != nil {
			return err
		}
	}
	text := fmt.Sprintf("agents: {default: keeper, enabled: [keeper]}\nchannels: {%s: {allow_from: [\"*\"]}}\n%s",
		ChannelID(channel), withChannel(channel, config))
	return os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(text), 0o600)
}

// Install adds an extension to a home, by its manifest.
func Install(dir, manifest string) error {
	_, id, _ := strings.Cut(manifest, "\nid: ")
	id, _, _ = strings.Cut(id, "\n")
	path := filepath.Join(dir, "extensions", id, "manifest.yaml")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return errors.Join(os.WriteFile(path, []byte(manifest), 0o600), consenttest.Allow(dir, id, manifest))
}

// withChannel enables a channel in a configuration: not all are by themselves.
func withChannel(channel, config string) string {
	const extensions = "extensions: {"
	enabled := extensions + ChannelID(channel) + ": {enabled: true}"
	if strings.Contains(config, extensions) {
		return strings.Replace(config, extensions, enabled+", ", 1)
	}
	return config + enabled + "}\n"
}

// Environment is that of a kernel, without its platform's.
func Environment(dir, modelURL string) []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "SWITCHBOARD_HOME=" + dir, "TZ=Europe/Berlin",
		"SWITCHBOARD_CRASH_OFTEN=1",
		"OPENAI_API_KEY=faults", "OPENAI_BASE_URL=" + modelURL, "OPENAI_MODEL=instant",
	}
}
