package hooks

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/extensions/webchannel/chat"
	"github.com/switchboard-run/switchboard/sdk"
)

// Received is the payload of the events of hooks.
type Received struct {
	Hook string          `json:"hook"`
	Text string          `json:"text,omitempty"` // of the template
	Body json.RawMessage `json:"body"`
}

// maxDedupe bounds the value of a header that tells repetitions.
const maxDedupe = 512

// take does with a body what the hook is for. Other statuses than 200 have a text.
func (h *Hooks) take(r *http.Request, hook *inbound, body []byte) (status int, text string) {
	id := strings.ToLower(rand.Text())
	if hook.Dedupe != "" {
		value := r.Header.Get(hook.Dedupe)
		if value == "" || len(value) > maxDedupe {
			return http.StatusBadRequest, "the header " + hook.Dedupe + " is missing or too long"
		}
		sum := sha256.Sum256([]byte(value))
		id = hex.EncodeToString(sum[:16])
	}
	said, err := hook.render(body)
	if err != nil {
		return http.StatusUnprocessableEntity, err.Error()
	}
	if said == "" && hook.To != "event" {
		return http.StatusOK, "" // the template leaves it out
	}
	// The sender may stop waiting, but not half of it.
	switch ctx := context.WithoutCancel(r.Context()); hook.To {
	case "message":
		err = h.message(ctx, hook, id, said)
	case "task":
		err = h.task(ctx, hook, id, said)
	default:
		err = h.event(ctx, hook, id, said, body)
	}
	switch {
	case err == nil:
		return http.StatusOK, ""
	case errors.Is(err, contract.ErrDenied):
		return http.StatusForbidden, err.Error()
	case errors.Is(err, contract.ErrTooLarge):
		return http.StatusRequestEntityTooLarge, "the text is too long"
	}
	h.o.Log.Warn("take the request of a hook", "hook", hook.name, "error", err)
	return http.StatusServiceUnavailable, "it could not be stored: try again"
}

func (h *Hooks) message(ctx context.Context, hook *inbound, id, text string) error {
	if _, err := h.guest(ctx, hook); err != nil {
		return err
	}
	_, err := h.o.Chat.Say(ctx, h.visitor(hook), chat.Message{
		ID: "h-" + id, Text: text, Agent: hook.Agent, ForwardedFrom: hook.forwarded(),
	})
	return err
}

func (h *Hooks) event(ctx context.Context, hook *inbound, id, text string, body []byte) error {
	if hook.template == nil {
		text = ""
	}
	_, err := h.o.Store.Commit(ctx, sdk.Publish(TopicHook+hook.name, Received{hook.name, text, body},
		sdk.Key(hook.name), sdk.Dedupe("hook/"+hook.name+"/"+id)))
	return err
}

// task gives the text to an agent as a job of the guest. The owner is shown the result.
func (h *Hooks) task(ctx context.Context, hook *inbound, id, text string) error {
	account, err := h.guest(ctx, hook)
	if err != nil {
		return err
	}
	_, err = h.o.Store.Commit(ctx, sdk.Publish(contract.TopicAgentTask, contract.AgentTask{
		Prompt: text, AgentID: hook.Agent, Name: hook.forwarded(),
		Principal: contract.Principal{Person: account, Own: true, Confined: true},
	}, sdk.Dedupe("hook/"+hook.name+"/"+id)))
	return err
}

// guestPrefix begins the keys with the codes by which the persons of hooks were admitted.
const guestPrefix = "hooks/guest/"

// guest returns the account of a hook's person. It is admitted the first time, and never
// again: after that the owner decides.
func (h *Hooks) guest(ctx context.Context, hook *inbound) (account string, err error) {
	h.admitting.Lock()
	defer h.admitting.Unlock()
	user := h.visitor(hook).User
	known, err := h.o.Read.People(ctx, &adminv1.PeopleRequest{})
	if err != nil {
		return "", err
	}
	if account = h.accountOf(known, user); account != "" {
		return account, nil
	}
	before, err := h.o.Store.Get(ctx, guestPrefix+hook.name)
	if err != nil {
		return "", err
	}
	code, err := h.code(ctx, hook, known)
	switch {
	case err != nil:
		return "", err
	case code == "":
		return "", errors.New("too many codes wait for approval")
	case before.Version == 0:
		if _, err := h.o.Store.Commit(ctx, sdk.PutAt(guestPrefix+hook.name, []byte(code), 0)); err != nil {
			return "", err
		}
	case string(before.Value) != code: // else a crash came before the approval
		return "", errRevoked
	}
	admitted, err := h.o.Manage.Approve(ctx, &adminv1.ApproveRequest{Code: code, Role: "guest"})
	return admitted.GetId(), err
}

// accountOf returns the account of a user who is admitted; empty: none is.
func (h *Hooks) accountOf(known *adminv1.PeopleResponse, user string) string {
	for _, p := range known.GetPeople() {
		for _, a := range p.GetAccounts() {
			if a.GetChannel() == h.o.Channel && a.GetUserId() == user && a.GetApprovedAtUs() != 0 && p.GetRole() != "blocked" {
				return a.GetId()
			}
		}
	}
	return ""
}

// code returns the code with which the person of a hook is admitted, as it is offered to any
// stranger; empty: there is none now.
func (h *Hooks) code(ctx context.Context, hook *inbound, known *adminv1.PeopleResponse) (string, error) {
	v := h.visitor(hook)
	if code := h.waiting(known, v.User); code != "" {
		return code, nil
	}
	err := h.o.Store.Receive(ctx, sdk.UserMessage{
		Text: "-", UserID: v.User, UserName: v.Name, ConversationID: v.User, Aside: true,
	}, "")
	if err != nil {
		return "", err
	}
	known, err = h.o.Read.People(ctx, &adminv1.PeopleRequest{})
	return h.waiting(known, v.User), err
}

func (h *Hooks) waiting(known *adminv1.PeopleResponse, user string) string {
	for _, w := range known.GetWaiting() {
		if w.GetChannel() == h.o.Channel && w.GetUserId() == user {
			return w.GetCode()
		}
	}
	return ""
}
