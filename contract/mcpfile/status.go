package mcpfile

// Status is the state of one server, as the extension that connects the servers reports it.
type Status struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Transport string `json:"transport"`
	Command   string `json:"command,omitempty"`
	URL       string `json:"url,omitempty"`
	// CallbackPort is the port that the browser is sent to after a login; 0: any.
	CallbackPort int    `json:"callback_port,omitempty"`
	Consent      string `json:"consent"` // allowed, refused, waiting
	By           string `json:"by,omitempty"`
	State        string `json:"state"` // one of the States
	// Broken: it did not start when it was needed last, or was given up. Error says why.
	Broken      bool     `json:"broken,omitempty"`
	Error       string   `json:"error,omitempty"`
	Version     string   `json:"protocol,omitempty"`
	Title       string   `json:"title,omitempty"`
	Tools       []string `json:"tools"`
	Prompts     []string `json:"prompts,omitempty"`
	Problems    []string `json:"problems,omitempty"`
	Permissions []string `json:"permissions,omitempty"`
}

// Decisions of the owner about a server.
const (
	Allowed = "allowed"
	Refused = "refused"
	Waiting = "waiting" // for the decision
)

// States of a server.
const (
	StateIdle       = "idle" // it starts when it is needed
	StateStarting   = "starting"
	StateRunning    = "running"
	StateBackingOff = "backing off"
	StateFailed     = "failed" // only a person starts it again
)
