from django.urls import path

from registry.views import catalogue, icons, overrides, review, role_tags, servers, tools, toolsets

app_name = "registry"

urlpatterns = [
    path("catalogue/", catalogue.catalogue, name="catalogue"),
    path("role-tags/", role_tags.role_tags, name="role_tags"),
    path("servers/", catalogue.servers, name="servers"),
    path("servers/<slug:slug>/", catalogue.server, name="server"),
    path("servers/<slug:slug>/items/", catalogue.items, name="items"),
    path("servers/<slug:slug>/refresh/", catalogue.refresh, name="refresh"),
    path("icons/<int:pk>.png", icons.icon, name="icon"),
    path("tools/<tool:name>/", tools.tool, name="tool"),
    path("tools/<tool:name>/versions/", tools.versions, name="tool_versions"),
    path(
        "tools/<tool:name>/roll-back/<int:version>/",
        tools.roll_back,
        name="roll_back",
    ),
    path("tools/<tool:name>/policy/", tools.policy, name="tool_policy"),
    path("tools/<tool:name>/publish/", review.publish, name="publish"),
    path("tools/<tool:name>/tags/", tools.tag, name="tag_tool"),
    path("tools/<tool:name>/handling/", tools.set_handling, name="set_handling"),
    path("tools/<tool:name>/results/", tools.set_results, name="set_results"),
    path("tools/<tool:name>/labels/", tools.set_labels, name="set_labels"),
    path("new/server/", servers.register, name="register"),
    path("servers/<slug:slug>/edit/", servers.edit, name="edit_server"),
    path("servers/<slug:slug>/enabled/", servers.set_enabled, name="set_server_enabled"),
    path("servers/<slug:slug>/relays/", servers.set_relays, name="set_server_relays"),
    path("servers/<slug:slug>/revision/", servers.set_revision, name="set_server_revision"),
    path("servers/<slug:slug>/review/", review.review, name="review"),
    path("toolsets/", toolsets.toolsets, name="toolsets"),
    path("new/toolset/", toolsets.add_toolset, name="add_toolset"),
    path("toolsets/<slug:slug>/", toolsets.toolset, name="toolset"),
    path("toolsets/<slug:slug>/list/", toolsets.tool_list, name="tool_list"),
    path("toolsets/<slug:slug>/connect/", toolsets.connect, name="connect"),
    path(
        "toolsets/<slug:slug>/own-tools/",
        toolsets.set_own_tools,
        name="set_toolset_own_tools",
    ),
    path("toolsets/<slug:slug>/hold/", toolsets.set_hold, name="set_toolset_hold"),
    path(
        "toolsets/<slug:slug>/search-mode/",
        toolsets.set_search_mode,
        name="set_toolset_search_mode",
    ),
    path("toolsets/<slug:slug>/title/", toolsets.set_title, name="set_toolset_title"),
    path("toolsets/<slug:slug>/separator/", toolsets.set_separator, name="set_toolset_separator"),
    path("toolsets/<slug:slug>/servers/", toolsets.set_servers, name="set_toolset_servers"),
    path("toolsets/<slug:slug>/agents/", toolsets.set_agents, name="set_toolset_agents"),
    path("toolsets/<slug:slug>/tools/add/", toolsets.add_tools, name="add_tools"),
    path("toolsets/<slug:slug>/tools/remove/", toolsets.remove_tools, name="remove_tools"),
    path("toolsets/<slug:slug>/tools/<tool:name>/", overrides.shown_tool, name="shown_tool"),
    path("agents/<slug:name>/toolsets/", toolsets.agent_toolsets, name="agent_toolsets"),
    path("agents/<slug:name>/connect/", toolsets.agent_connect, name="agent_connect"),
]
