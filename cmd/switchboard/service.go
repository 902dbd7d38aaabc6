package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/cmd/switchboard/service"
	"github.com/switchboard-run/switchboard/home/config"
)

func newServiceCommand() *cobra.Command {
	return group("service", "Keep Switchboard running, also after a restart of the machine",
		newServiceInstall(), newServiceUninstall(), newServiceStatus())
}

// systemFlag adds --system.
func systemFlag(c *cobra.Command) *bool {
	return c.Flags().Bool("system", os.Geteuid() == 0, "a service of the system; the default for root")
}

func newServiceInstall() *cobra.Command {
	var runAs string
	var linger, show bool
	c := &cobra.Command{
		Use: "install", Short: "Install the service, or update it", Args: cobra.NoArgs,
		Long: "Installs a service that runs `switchboard run` now and after each start of the machine, and starts it\n" +
			"again if it ends: of systemd on Linux, of launchd on macOS. Without root it is yours alone; with root it\n" +
			"is one of the system. Running it again updates the service.",
		Example: "  switchboard service install\n  sudo switchboard service install --run-as anna\n" +
			"  switchboard service install --print",
	}
	system := systemFlag(c)
	c.Flags().StringVar(&runAs, "run-as", "", "who a service of the system runs as; default: who called sudo")
	c.Flags().BoolVar(&linger, "linger", true, "on Linux: also run while you aren't logged in")
	c.Flags().BoolVar(&show, "print", false, "only print the definition of the service")
	c.RunE = func(c *cobra.Command, _ []string) error {
		s, err := describeService(*system, runAs)
		if err != nil {
			return fmt.Errorf("install the service: %w", err)
		}
		m, err := serviceManager(*system)
		if err != nil {
			return err
		}
		p := printerOf(c)
		if show {
			text, err := m.Define(s)
			if err != nil {
				return fmt.Errorf("describe the service: %w", err)
			}
			fmt.Fprint(p.w, text)
			return nil
		}
		if *system && os.Geteuid() != 0 {
			return errors.New("install a service of the system: that takes root: use sudo, or leave out --system")
		}
		running := kernelRuns(c.Context())
		changed, err := service.Install(c.Context(), m, s)
		if err != nil {
			return fmt.Errorf("install the service: %w", err)
		}
		p.installed(c.Context(), m, s, changed, linger)
		if running && changed {
			p.line("%s", p.paint(yellow, "A kernel already ran on this home. If it isn't the service, stop it: the service "+
				"takes over within ten seconds."))
		}
		if *system {
			return nil // the shell's secrets are another user's
		}
		if left := onlyHere(s); len(left) > 0 {
			p.line("%s", p.paint(yellow, fmt.Sprintf("The service doesn't have %s from this shell: put that into secrets.env.",
				strings.Join(left, ", "))))
		}
		return nil
	}
	return c
}

// installed tells what Install did.
func (p *printer) installed(ctx context.Context, m service.Manager, s service.Service, changed, linger bool) {
	if !changed {
		p.line("The service is installed and running. Nothing changed.")
	} else {
		p.line("The service is installed and starts now.")
	}
	p.line("  file   %s", m.File())
	p.line("  home   %s", s.Home)
	if s.User != "" {
		p.line("  user   %s", s.User)
	}
	if d, ok := m.(service.Systemd); ok && !d.System && linger && !d.Lingers(ctx) {
		if err := d.Linger(ctx); err == nil {
			p.line("It also runs while you aren't logged in (`loginctl disable-linger` ends that).")
		}
	}
	if state, err := m.State(ctx); err == nil && state.Starts == service.Login {
		p.line("%s", p.paint(yellow, p.afterLogin()))
	} else {
		p.line("It starts with the machine, and again if it ends.")
	}
	p.faint("`switchboard service status` shows whether it runs, `" + m.LogCommand() + "` its output.")
}

// afterLogin tells what is missing for a start with the machine.
func (p *printer) afterLogin() string {
	if runtime.GOOS == darwin {
		return "It starts when you log in. To start it with the machine: sudo switchboard service install"
	}
	return "It runs only while you are logged in. To start it with the machine: sudo loginctl enable-linger " + userName()
}

func newServiceUninstall() *cobra.Command {
	c := &cobra.Command{
		Use: "uninstall", Short: "Stop the service and remove it; the home stays", Args: cobra.NoArgs,
	}
	system := systemFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		m, err := serviceManager(*system)
		if err != nil {
			return err
		}
		removed, err := service.Uninstall(c.Context(), m)
		switch p := printerOf(c); {
		case err != nil:
			return fmt.Errorf("uninstall the service: %w", err)
		case removed:
			p.line("The service is stopped and removed. The home and everything in it stay.")
		default:
			p.line("The service isn't installed.")
		}
		return nil
	}
	return c
}

func newServiceStatus() *cobra.Command {
	c := &cobra.Command{
		Use: "status", Short: "Show whether the service is installed and runs", Args: cobra.NoArgs,
		Long: "Shows whether the service is installed and runs. The exit status is 1 if it doesn't run.",
	}
	system, asJSON := systemFlag(c), jsonFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		m, err := serviceManager(*system)
		if err == nil {
			err = m.Reachable(c.Context())
		}
		var s service.State
		if err == nil {
			s, err = m.State(c.Context())
		}
		if err != nil {
			return fmt.Errorf("read the state of the service: %w", err)
		}
		if *asJSON {
			err = printJSON(c, s)
		} else {
			printerOf(c).service(m, s)
		}
		if err == nil && !s.Running {
			err = errReported
		}
		return err
	}
	return c
}

func (p *printer) service(m service.Manager, s service.State) {
	if !s.Installed {
		p.line("The service isn't installed: `switchboard service install` installs it.")
		return
	}
	state := p.paint(red, s.State)
	if s.Running {
		state = p.paint(green, "running")
		if s.PID > 0 {
			state += fmt.Sprintf(", pid %d", s.PID)
		}
	}
	if s.Restarts > 0 {
		state += fmt.Sprintf(", started again %s", count(s.Restarts, "time"))
	}
	p.line("The service is %s.", state)
	p.line("  file   %s", s.File)
	switch {
	case !s.Enabled:
		p.line("%s", p.paint(yellow, "It doesn't start by itself: run `switchboard service install` again."))
	case s.Starts == service.Login:
		p.line("%s", p.paint(yellow, p.afterLogin()))
	default:
		p.line("It starts with the machine.")
	}
	if !s.Running {
		p.line("`%s` shows why, and `switchboard doctor` what to do.", m.LogCommand())
	}
}

const darwin = "darwin"

// serviceManager returns the service manager of this system.
func serviceManager(system bool) (service.Manager, error) {
	dir, err := os.UserHomeDir()
	if err != nil && !system {
		return nil, fmt.Errorf("find the directory of services: %w", err)
	}
	switch runtime.GOOS {
	case "linux":
		d := service.Systemd{System: system, User: userName(), Dir: "/etc/systemd/system", Run: service.Command()}
		if !system {
			settings := os.Getenv("XDG_CONFIG_HOME")
			if !filepath.IsAbs(settings) {
				settings = filepath.Join(dir, ".config")
			}
			d.Dir = filepath.Join(settings, "systemd", "user")
			// A login over su or a script may lack it.
			runDir := "/run/user/" + strconv.Itoa(os.Getuid())
			if _, err := os.Stat(runDir); err == nil && os.Getenv("XDG_RUNTIME_DIR") == "" {
				d.Run = service.Command("XDG_RUNTIME_DIR=" + runDir)
			}
		}
		return d, nil
	case darwin:
		l := service.Launchd{System: system, UID: os.Getuid(), Dir: "/Library/LaunchDaemons", Logs: "/Library/Logs",
			Run: service.Command(), Wait: pause}
		if !system {
			l.Dir, l.Logs = filepath.Join(dir, "Library", "LaunchAgents"), filepath.Join(dir, "Library", "Logs")
		}
		return l, nil
	}
	return nil, fmt.Errorf("services aren't supported on %s: have `switchboard run` started by the system", runtime.GOOS)
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

func userName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return strconv.Itoa(os.Getuid())
}

// describeService returns what the service of this program, home and environment runs.
func describeService(system bool, runAs string) (s service.Service, err error) {
	if s.Program, err = program(); err != nil {
		return s, err
	}
	env := os.LookupEnv
	switch {
	case system:
		s.User = cmp.Or(runAs, os.Getenv("SUDO_USER"), userName())
		u, err := user.Lookup(s.User)
		if err != nil {
			return s, fmt.Errorf("find the user %s: %w", s.User, err)
		}
		if u.Uid != strconv.Itoa(os.Getuid()) {
			env = environOf(u)
		}
	case runAs != "":
		return s, errors.New("--run-as is for a service of the system: add --system, and use sudo")
	}
	path, err := config.HomePath(env)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return s, err
	}
	s.Home = path
	for _, name := range []string{"PATH", "TZ", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"} {
		// Everybody can read the definition of a service: a proxy's password is left out.
		if value := os.Getenv(name); value != "" && !strings.Contains(value, "@") {
			s.Environ = append(s.Environ, name+"="+value)
		}
	}
	return s, nil
}

// environOf is the environment of another user, of which only the home is known.
func environOf(u *user.User) func(string) (string, bool) {
	return func(name string) (string, bool) {
		switch name {
		case "HOME":
			return u.HomeDir, true
		case config.HomeEnv:
			return os.LookupEnv(name)
		}
		return "", false
	}
}

// program returns the path of this program for a service. A symbolic link on the PATH is
// kept, because an upgrade may change where it points.
func program() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find the executable: %w", err)
	}
	if strings.Contains(self, string(filepath.Separator)+"go-build") {
		return "", errors.New("`go run` makes a program that is deleted afterwards: build one that stays " +
			"(go build -o ~/.local/bin/switchboard ./cmd/switchboard) and use that")
	}
	mine, err := os.Stat(self)
	if err != nil {
		return "", fmt.Errorf("the program was replaced or deleted while it ran; run the new one: %w", err)
	}
	if found, err := exec.LookPath(os.Args[0]); err == nil {
		if found, err = filepath.Abs(found); err == nil {
			if info, err := os.Stat(found); err == nil && os.SameFile(info, mine) {
				return found, nil
			}
		}
	}
	return self, nil
}

// kernelRuns reports whether a kernel runs on the home.
func kernelRuns(ctx context.Context) bool {
	k, err := connect(ctx)
	if err != nil {
		return false
	}
	k.Close()
	return true
}

// onlyHere returns the names that extensions read from this environment, which neither the
// service nor the files of the home have.
func onlyHere(s service.Service) []string {
	h, err := findHome()
	if err != nil {
		return nil
	}
	seen, err := inspect(h)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(seen.OnlyInEnvironment, func(name string) bool {
		return slices.ContainsFunc(s.Environ, func(v string) bool { return strings.HasPrefix(v, name+"=") })
	})
}
