package router

import (
	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// undraft removes what a turn may have shown of its text and does not say in the
// end. Only a channel that shows drafts hears of it.
func (r *MessageRouter) undraft(tx *bus.Tx, s *journal.Session, out contract.AgentOutput) error {
	target := out.ReplyTo
	if target == "" && s.OutboundKind == directory.OutboundConversation {
		target = s.OutboundTarget
	}
	if s.Conversation == 0 || target == "" {
		return nil // drafts are shown in chats alone
	}
	turn, err := tx.Turn(out.Turn)
	if err != nil || turn == nil {
		return err
	}
	to, err := r.resolve(tx, target)
	if err != nil || to == nil || to.address == "" || !to.channel.Drafts {
		return err
	}
	owner, err := ownerOn(tx, to.channel)
	if err != nil {
		return err
	}
	_, err = tx.Emit(contract.TopicChannelSend+to.channel.ID, to.lane(owner), contract.ChannelSend{
		Conversation: to.address, Thread: to.thread, DraftID: journal.EventID(turn.Inputs[0]), Kind: contract.SendReply, Session: out.Session,
	})
	return err
}
