package router_test

import (
	"regexp"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
)

// english matches words in small letters that follow no slash: no commands or codes.
var english = regexp.MustCompile(`(?:^|[\s(:.,])([a-z]{3,})`)

// A person whose language there is reads nothing else, from the first message on.
func TestPersonsLanguage(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram := w.Channel("telegram")
		w.Agent("orchestrator")
		says := func(text string) string {
			t.Helper()
			telegram.Reports(contract.UserMessage{
				UserID: "anna", UserName: "anna", ConversationID: "anna", Text: text, Language: "ru-RU",
			})
			return telegram.ShowsOne("").Text
		}
		for i, text := range []string{
			"hi", "/help", "/help new", "/help nothing", "/nothing", "/new", "/stop", "/status", "/agent",
			"/agent orchestrator", "/questions", "/answer q7 yes", "/approve", "/sethome", "/household",
		} {
			if i == 1 {
				telegram.Admits("anna")
			}
			said := says(text)
			for _, found := range english.FindAllStringSubmatch(said, -1) {
				switch found[1] {
				case "orchestrator", "telegram", "nothing", "off", "all", "well": // names, and what this world says of itself
				default:
					t.Errorf("%s is answered in English too (%q): %s", text, found[1], said)
				}
			}
		}
		telegram.Reports(contract.UserMessage{UserID: "anna", ConversationID: "anna", Text: "/stop"})
		telegram.ShowsOne("Nothing is running here.")
	})
}

// The owner reads notices of the kernel in their language, and so the mark of a
// repetition.
func TestOwnersLanguage(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram, orchestrator := w.Channel("telegram"), w.Agent("orchestrator")
		telegram.Admits("anna")
		telegram.Reports(contract.UserMessage{
			UserID: "anna", UserName: "anna", ConversationID: "anna", Text: "/status", Language: "ru",
		})
		telegram.ShowsOne("")
		w.Emits(contract.TopicAgentTask, contract.AgentTask{Prompt: "tidy up", AgentID: "nobody"})
		telegram.ShowsOne("не может выполниться. Агента \"nobody\" нет. Он выбран вами. Другого выберет /agent.")
		w.Emits(contract.TopicUserNotify, contract.UserNotify{Text: "dinner", ChannelID: "telegram"})
		telegram.Take()
		telegram.Dies()
		telegram.Starts()
		w.Wait(2 * time.Second)
		telegram.ShowsOne("(возможно, повтор) dinner")
		orchestrator.HearsNothing()
	})
}
