package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/contract/mcpfile"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

func newMCPLogin() *cobra.Command {
	c := &cobra.Command{
		Use: "login SERVER", Short: "Log in to an MCP server of mcp.json", Args: cobra.ExactArgs(1),
		Long: "Shows the address at which you log in to the server, opens it if there is a browser, and waits until\n" +
			"you have agreed. If the browser is on another machine, it ends at a page that can't be reached: paste\n" +
			"the address of that page.",
		Example: "  switchboard mcp login github",
	}
	quiet := c.Flags().Bool("no-browser", false, "only show the address")
	c.RunE = withKernel("log in to", func(c *cobra.Command, k *admin.Client, args []string) error {
		answers := make(chan string, 10)
		ctx, cancel := context.WithCancel(c.Context())
		defer cancel()
		all, err := callTool[[]*mcpfile.Status](ctx, k, "mcp/status", map[string]any{})
		if err != nil {
			return noServers(err)
		}
		port := 0
		for _, s := range all {
			if s.ID == mcpfile.ID(args[0]) {
				port = s.CallbackPort
			}
		}
		redirect, stop, err := listenForAnswer(ctx, port, answers)
		if err != nil {
			return err
		}
		defer stop()
		begun, err := callTool[struct{ URL string }](ctx, k, "mcp/login",
			map[string]any{"server": args[0], "address": redirect})
		if err != nil {
			return err
		}
		p := printerOf(c)
		p.line("Open this address and agree:\n\n%s\n", begun.URL)
		p.faint("Waiting for the answer. If the browser ends at a page that can't be reached, paste its address here.")
		if !*quiet {
			openBrowser(ctx, begun.URL)
		}
		go readLines(ctx, c.InOrStdin(), answers)
		for {
			select {
			case answer := <-answers:
				said, err := callTool[struct{ Text string }](ctx, k, "mcp/login_finish",
					map[string]any{"server": args[0], "address": answer})
				if err != nil && strings.Contains(err.Error(), "copy the whole address") {
					p.line("%s", p.paint(red, message(err)))
					continue // the login is still under way
				}
				if err != nil {
					return err
				}
				p.line("%s", said.Text)
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})
	return c
}

const callbackPath = "/callback"

// listenForAnswer takes the redirect of the browser on a port of this machine; 0: any.
func listenForAnswer(
	ctx context.Context, port int, answers chan<- string,
) (redirect string, stop func(), err error) {
	var config net.ListenConfig
	at, err := config.Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return "", nil, fmt.Errorf("listen for the browser: %w", err)
	}
	address := "http://" + at.Addr().String()
	s := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(
		func(w http.ResponseWriter, q *http.Request) {
			if q.Method != http.MethodGet || q.URL.Path != callbackPath || q.Host != at.Addr().String() ||
				q.URL.Query().Get("state") == "" {
				http.NotFound(w, q)
				return
			}
			select {
			case answers <- address + q.URL.RequestURI():
				fmt.Fprintln(w, "You can close this page. Switchboard says whether the login worked.")
			default:
				http.Error(w, "too many answers", http.StatusTooManyRequests)
			}
		})}
	go func() { _ = s.Serve(at) }() // ends by Close
	stop = func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if err := s.Shutdown(ending); errors.Is(err, context.DeadlineExceeded) {
			_ = s.Close()
		}
	}
	return address + callbackPath, stop, nil
}

// readLines takes pasted addresses.
func readLines(ctx context.Context, in io.Reader, answers chan<- string) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 64<<10)
	for lines.Scan() {
		if line := strings.TrimSpace(lines.Text()); line != "" {
			select {
			case answers <- line:
			case <-ctx.Done():
				return
			}
		}
	}
}

// openBrowser opens an address, if there is a browser.
func openBrowser(ctx context.Context, address string) {
	program := ""
	switch {
	case runtime.GOOS == "darwin":
		program = "open"
	case os.Getenv("DISPLAY") != "" || os.Getenv("WAYLAND_DISPLAY") != "":
		program = "xdg-open"
	}
	if path, err := exec.LookPath(program); program != "" && err == nil {
		_ = exec.CommandContext(ctx, path, address).Start() //nolint:gosec // the address was checked; the person reads it
	}
}
