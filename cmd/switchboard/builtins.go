package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/switchboard-run/switchboard/cmd/internal/confine"
	"github.com/switchboard-run/switchboard/cmd/switchboard/rest"
	"github.com/switchboard-run/switchboard/extensions/agent"
	"github.com/switchboard-run/switchboard/extensions/anthropic"
	"github.com/switchboard-run/switchboard/extensions/clichannel"
	"github.com/switchboard-run/switchboard/extensions/discordchannel"
	"github.com/switchboard-run/switchboard/extensions/documents"
	"github.com/switchboard-run/switchboard/extensions/extensions"
	"github.com/switchboard-run/switchboard/extensions/heartbeat"
	"github.com/switchboard-run/switchboard/extensions/links"
	"github.com/switchboard-run/switchboard/extensions/mcp"
	"github.com/switchboard-run/switchboard/extensions/mcpserver"
	"github.com/switchboard-run/switchboard/extensions/memory"
	"github.com/switchboard-run/switchboard/extensions/offline"
	"github.com/switchboard-run/switchboard/extensions/openai"
	"github.com/switchboard-run/switchboard/extensions/scheduler"
	"github.com/switchboard-run/switchboard/extensions/sessions"
	"github.com/switchboard-run/switchboard/extensions/slackchannel"
	"github.com/switchboard-run/switchboard/extensions/tasks"
	"github.com/switchboard-run/switchboard/extensions/telegramchannel"
	"github.com/switchboard-run/switchboard/extensions/usage"
	"github.com/switchboard-run/switchboard/extensions/web"
	"github.com/switchboard-run/switchboard/extensions/web/page"
	"github.com/switchboard-run/switchboard/extensions/webchannel"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/document"
)

// extensionCommand makes the binary serve built-in extensions.
const extensionCommand = "extension"

// documentCommand makes the binary extract the text of a document.
const documentCommand = "extension-document"

// pageCommand makes the binary extract the text of a web page.
const pageCommand = "extension-page"

// documentReader and pageReader extract texts in a process of their own. Without the path of
// this program it is done in the process that asks.
var (
	documentReader = document.Reader{Command: thisProgram(documentCommand)}
	pageReader     = page.Reader{Command: thisProgram(pageCommand)}
)

func thisProgram(command string) []string {
	program, err := os.Executable()
	if err != nil {
		return nil
	}
	return []string{program, command}
}

// confineCommand makes the binary enter a sandbox and execute the rest of its arguments,
// an extension of a third party.
const confineCommand = "extension-sandbox"

func runConfined(args []string) {
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	fmt.Fprintf(os.Stderr, "cannot start the extension in its sandbox: %v\n", confine.Exec(args))
	os.Exit(1)
}

// builtins are the extensions in this binary, by the value of run.builtin in manifests.
var builtins = map[string]func(id string) sdk.Extension{
	"agent":            func(id string) sdk.Extension { return agent.NewReading(id, documentReader) },
	"anthropic":        anthropic.New,
	"cli_channel":      func(string) sdk.Extension { return clichannel.Extension() },
	"discord_channel":  func(string) sdk.Extension { return discordchannel.New() },
	"documents":        func(string) sdk.Extension { return documents.New(documentReader) },
	"extensions":       func(string) sdk.Extension { return extensions.New() },
	"heartbeat":        func(string) sdk.Extension { return heartbeat.New() },
	"links":            func(string) sdk.Extension { return links.New() },
	"mcp_server":       func(string) sdk.Extension { return mcpserver.New() },
	"mcp":              func(string) sdk.Extension { return mcp.New() },
	"memory":           func(string) sdk.Extension { return memory.New() },
	"offline":          func(string) sdk.Extension { return offline.New() },
	"openai":           openai.New,
	"sessions":         func(string) sdk.Extension { return sessions.New() },
	"scheduler":        func(string) sdk.Extension { return scheduler.New() },
	"tasks":            func(string) sdk.Extension { return tasks.New() },
	"usage":            func(string) sdk.Extension { return usage.New() },
	"slack_channel":    func(string) sdk.Extension { return slackchannel.New() },
	"telegram_channel": func(string) sdk.Extension { return telegramchannel.New() },
	"web_channel":      func(string) sdk.Extension { return webchannel.New(version) },
	"web":              func(string) sdk.Extension { return web.New(version, pageReader) },
}

// serveBuiltins serves the members of one process, each <builtin>:<id>.
func serveBuiltins(members []string) {
	// Built-ins mostly wait. With one processor they do not wake each other's threads
	// at every message.
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(1)
	}
	if err := confine.Enter(); err != nil {
		fmt.Fprintf(os.Stderr, "cannot enter the sandbox: %v\n", err)
		os.Exit(1)
	}
	go rest.Watch(context.Background())
	exts := make([]sdk.Extension, 0, len(members))
	for _, m := range members {
		name, id, _ := strings.Cut(m, ":")
		build, ok := builtins[name]
		if !ok {
			fmt.Fprintf(os.Stderr, "switchboard: there is no built-in extension %q; set the manifest's run.builtin "+
				"to one of those in `switchboard extensions list`\n", name)
			os.Exit(1)
		}
		exts = append(exts, build(id))
	}
	sdk.Serve(exts...)
}
